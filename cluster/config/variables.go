package config

import (
	"slices"
	"strconv"
	"strings"
)

// flagVariables are the variables of people that are true or false. What else they were
// could open what somebody meant to close.
var flagVariables = []string{
	"AUTH_CREDENTIALS_LOGIN_ENABLED", "AUTH_EE_ALLOW_EMAIL_ACCOUNT_LINKING", "AUTH_EE_GCP_IAP_ENABLED",
	"DISABLE_API_KEY_CREATION_FOR_NON_OWNER_USERS", "DISABLE_API_KEY_USAGE_FOR_NON_OWNER_USERS", "REQUIRE_APPROVAL_NEW_MEMBERS",
}

// secondVariables are the variables of people that are seconds.
var secondVariables = []string{"AUTH_SESSION_MAX_AGE_SECONDS", "AUTH_SESSION_UPDATE_AGE_SECONDS"}

// Variable says what is wrong with the value of a variable about people; "" for
// nothing, and for other variables.
func Variable(name, value string) string {
	value = strings.ToLower(strings.TrimSpace(value))
	if slices.Contains(flagVariables, name) && value != "" && value != "true" && value != "false" {
		return "It must be true or false."
	}
	if n, err := strconv.Atoi(value); slices.Contains(secondVariables, name) && value != "" && (err != nil || n < 60 || n > 365*86400) {
		return "It must be a whole number of seconds, from a minute to a year."
	}
	return ""
}

// VariablesOfPeople are the variables that [Variable] checks.
func VariablesOfPeople() []string { return append(slices.Clone(flagVariables), secondVariables...) }
