package config

import (
	"slices"
	"strconv"
	"strings"
)

// CheckedVariable is a variable of the environment whose value is refused where
// it could not be read, and what refuses it. No value is good.
type CheckedVariable struct {
	Name  string
	Check func(value string) error
}

// peopleVariables are the variables about people. What else a flag of them was
// could open what somebody meant to close.
var peopleVariables = []CheckedVariable{
	{"AUTH_CREDENTIALS_LOGIN_ENABLED", wantFlag},
	{"AUTH_EE_ALLOW_EMAIL_ACCOUNT_LINKING", wantFlag},
	{"AUTH_EE_GCP_IAP_ENABLED", wantFlag},
	{"DISABLE_API_KEY_CREATION_FOR_NON_OWNER_USERS", wantFlag},
	{"DISABLE_API_KEY_USAGE_FOR_NON_OWNER_USERS", wantFlag},
	{"REQUIRE_APPROVAL_NEW_MEMBERS", wantFlag},
	{"AUTH_SESSION_MAX_AGE_SECONDS", wantSeconds},
	{"AUTH_SESSION_UPDATE_AGE_SECONDS", wantSeconds},
}

// VariablesOfPeople are the variables about people, which the environment may
// hold as well as the configuration.
func VariablesOfPeople() []CheckedVariable { return slices.Clone(peopleVariables) }

// checkVariable refuses the value of a variable about people that cannot be
// read; it has nothing against other variables.
func checkVariable(name, value string) error {
	for _, v := range peopleVariables {
		if v.Name == name {
			return v.Check(value)
		}
	}
	return nil
}

// unreadable is what is wrong with a value, as a sentence for people.
type unreadable string

func (u unreadable) Error() string { return string(u) }

func wantFlag(value string) error {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "true", "false":
		return nil
	}
	return unreadable("It must be true or false.")
}

func wantSeconds(value string) error {
	value = strings.TrimSpace(value)
	if value == "" {
		return nil
	}

	const least, most = 60, 365 * 86400
	if n, err := strconv.Atoi(value); err != nil || n < least || n > most {
		return unreadable("It must be a whole number of seconds, from a minute to a year.")
	}
	return nil
}
