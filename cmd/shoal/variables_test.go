package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
)

// lookups matches the places where a part of a node reads a variable by name.
var lookups = regexp.MustCompile(`(?:[lL]ookup|[fF]lag|LookupEnv|seconds|life|secret|bearerKey|tokenOf)\([^()\n]*"([A-Z][A-Z0-9]+_[A-Z0-9_]+)"|[vV]ariable\w*:?\s*:?=?\s*"([A-Z][A-Z0-9]+_[A-Z0-9_]+)"`)

// The table of the configuration has exactly the variables that a node reads while it runs. So a
// file with them gets correct explanations, and an invalid value stops the start.
func TestEnvironmentVariables_areAllInTheTable(t *testing.T) {
	t.Parallel()
	var table []string
	for _, v := range config.Variables() {
		table = append(table, v.Name)
	}

	read := map[string]string{}
	err := filepath.WalkDir(filepath.Join("..", "..", "node"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range lookups.FindAllStringSubmatch(string(text), -1) {
			read[m[1]+m[2]] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if len(read) < 30 {
		t.Errorf("only %d variables are found to be read: %v", len(read), read)
	}
	for name, path := range read {
		if !slices.Contains(table, name) {
			t.Errorf("%s reads %s, which is not in the table of cluster/config/variables.go", path, name)
		}
	}
}

// peopleTests are the variables about people and permissions, each with the test of its effect.
var peopleTests = map[string]string{
	"AUTH_CREDENTIALS_LOGIN_ENABLED":               "TestPasswordSignIn_failuresLookAlikeAndWriteNothing",
	"AUTH_EE_ALLOW_EMAIL_ACCOUNT_LINKING":          "TestProviderSignIn_obeysTheSignUpAndLinkingSettings",
	"AUTH_EE_GCP_IAP_AUDIENCE":                     "TestProxySignIn_needsASignedValidStatement",
	"AUTH_EE_GCP_IAP_ENABLED":                      "TestProxySignIn_needsASignedValidStatement",
	"AUTH_SESSION_MAX_AGE_SECONDS":                 "TestSession_endsIfUnused",
	"AUTH_SESSION_UPDATE_AGE_SECONDS":              "TestSessions_recordUseAsOftenAsTheVariableSays",
	"AUTH_URL":                                     "TestBaseURL_changesWithAUTH_URLWithoutARestart",
	"DISABLE_API_KEY_CREATION_FOR_NON_OWNER_USERS": "TestAPIKeys_canBeRestrictedToOwners",
	"DISABLE_API_KEY_USAGE_FOR_NON_OWNER_USERS":    "TestAPIKeys_canBeRestrictedToOwners",
	"EXPERIMENT_EE_PERMISSION_SYNC_ENABLED":        "TestPermissionSetting_overrideWinsOverEnvironment",
	"FORCE_ENABLE_ANONYMOUS_ACCESS":                "TestAnonymousAccess_overrideWinsOverVariableOverSetting",
	"OAUTH_ACCESS_TOKEN_TTL_SECONDS":               "TestTokenLifetimes_areReadFromVariables",
	"OAUTH_AUTHORIZATION_CODE_TTL_SECONDS":         "TestTokenLifetimes_areReadFromVariables",
	"OAUTH_REFRESH_TOKEN_TTL_SECONDS":              "TestTokenLifetimes_areReadFromVariables",
	"PERMISSION_SYNC_ENABLED":                      "TestPermissionSetting_overrideWinsOverEnvironment",
	"REQUIRE_APPROVAL_NEW_MEMBERS":                 "TestProviderSignIn_obeysTheSignUpAndLinkingSettings",
	"SHOAL_ALLOWED_EMAIL_DOMAINS":                  "TestProviderSignIn_obeysTheSignUpAndLinkingSettings",
	"SHOAL_AUDIT_DISK_MB":                          "TestAuditPolicy_isReadFromVariables",
	"SHOAL_AUDIT_QUERIES":                          "TestAuditPolicy_isReadFromVariables",
	"SHOAL_MAX_PERMISSION_AGE":                     "TestCredentials_areRefusedIfTheCatalogIsTooOld",
	"SHOAL_OAUTH_CIMD":                             "TestClientDocuments_someClientsAreBuiltIn",
	"SHOAL_OAUTH_CLIENT_HOSTS":                     "TestClientHosts_outsideTheAllowedListAreRefused",
	"SHOAL_OAUTH_REFRESH_GRACE":                    "TestRefreshGrace_isReadFromAVariable",
	"SHOAL_OPERATOR_SOCKET":                        "TestOperatorSocket_rightsCanBeSwitchedOff",
	"SHOAL_WATCH_RECEIVERS":                        "TestWatch_sendsToAWebhookAndByMail",
	"SOURCEBOT_EE_AUDIT_LOGGING_ENABLED":           "TestAuditPolicy_isReadFromVariables",
	"SOURCEBOT_EE_AUDIT_RETENTION_DAYS":            "TestAuditPolicy_isReadFromVariables",
}

// Every variable about people and permissions, also an ignored one, has a test of its effect and
// a place in the documentation.
func TestPeopleVariables_haveTestsAndDocumentation(t *testing.T) {
	t.Parallel()
	docs := ""
	for _, name := range []string{"docs/how-to/harden.md", "docs/reference/flags-and-variables.md", "docs/how-to/permissions.md", "docs/audit.md", "docs/reference/oauth.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		docs += string(text)
	}
	names := declared(sources(t))
	about := regexp.MustCompile(`^(AUTH|DISABLE|FORCE|OAUTH|REQUIRE|EXPERIMENT|PERMISSION|SHOAL_(ALLOWED|AUDIT|MAX|OAUTH|OPERATOR)|SOURCEBOT_EE)_`)

	for _, v := range config.Variables() {
		if !about.MatchString(v.Name) {
			continue
		}
		if test := peopleTests[v.Name]; test == "" || !names[test] {
			t.Errorf("no test shows the effect of %s: %q", v.Name, test)
		}
	}
	told := config.Unread()
	for name := range peopleTests {
		told = append(told, name)
	}
	for _, name := range told {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(docs) {
			t.Errorf("%s is in no document", name)
		}
	}
}

// A misspelt variable is named with the one that was meant. Values, and variables of others, are not.
func TestServe_warnsOfMisspeltVariables(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	warnMisspelt([]string{"SHOAL_LISTN=secret-value", "SHOAL_LISTEN=:1", "SHOAL_SERVICE_HOST=x", "SHOAL_PORT_7700_TCP=x", "SHOAL_MAX_PERMISION_AGE=1h"},
		slog.New(slog.NewTextHandler(&out, nil)))
	if got := out.String(); strings.Count(got, "level=WARN") != 2 || !strings.Contains(got, "name=SHOAL_LISTN \"did you mean\"=SHOAL_LISTEN") ||
		!strings.Contains(got, "=SHOAL_MAX_PERMISSION_AGE") || strings.Contains(got, "secret-value") {
		t.Error(got)
	}
}

// At the start the log names variables that nothing reads. Without such variables there is no
// message.
func TestServe_warnsOfUnreadVariables(t *testing.T) {
	t.Parallel()
	for _, name := range append(config.Unread(), "") {
		var out bytes.Buffer
		warnUnread(func(n string) string {
			if n == name {
				return "secret-value"
			}
			return ""
		}, slog.New(slog.NewTextHandler(&out, nil)))
		said := strings.Count(out.String(), "level=WARN") == 1 && strings.Contains(out.String(), "name="+name)
		if name != "" && !said || name == "" && out.Len() > 0 || strings.Contains(out.String(), "secret-value") {
			t.Errorf("%q: %s", name, out.String())
		}
	}
}
