package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Variable is a variable that a node reads while it runs: from the overrides of
// the configuration, else from its environment.
type Variable struct {
	Name  string
	Check func(value string) error // refuses what cannot be read; no value is good
}

// variables are all of them. A value that cannot be read is refused, at the
// start of a node and in a file: later it would count as not given, and could
// open what somebody meant to close.
var variables = []Variable{
	// People and what they may do.
	{"AUTH_CREDENTIALS_LOGIN_ENABLED", wantFlag},
	{"AUTH_EE_ALLOW_EMAIL_ACCOUNT_LINKING", wantFlag},
	{"AUTH_EE_GCP_IAP_AUDIENCE", anyText},
	{"AUTH_EE_GCP_IAP_ENABLED", wantFlag},
	{"AUTH_SESSION_MAX_AGE_SECONDS", wantSeconds},
	{"AUTH_SESSION_UPDATE_AGE_SECONDS", wantSeconds},
	{"DISABLE_API_KEY_CREATION_FOR_NON_OWNER_USERS", wantFlag},
	{"DISABLE_API_KEY_USAGE_FOR_NON_OWNER_USERS", wantFlag},
	{"FORCE_ENABLE_ANONYMOUS_ACCESS", wantBool},
	{"REQUIRE_APPROVAL_NEW_MEMBERS", wantFlag},
	{"SHOAL_ALLOWED_EMAIL_DOMAINS", anyText},
	{"SHOAL_MAX_PERMISSION_AGE", readBy(PermissionAge)},
	{"SHOAL_OPERATOR_SOCKET", wantBool},

	// Permissions, and the audit.
	{"EXPERIMENT_EE_PERMISSION_SYNC_ENABLED", wantBool},
	{"PERMISSION_SYNC_ENABLED", wantBool},
	{"SHOAL_AUDIT_DISK_MB", readBy(AuditDisk)},
	{"SHOAL_AUDIT_QUERIES", readBy(AuditQueries)},
	{"SOURCEBOT_EE_AUDIT_LOGGING_ENABLED", wantBool},
	{"SOURCEBOT_EE_AUDIT_RETENTION_DAYS", readBy(AuditDays)},

	// Agents and questions.
	{"OAUTH_ACCESS_TOKEN_TTL_SECONDS", readBy(AccessTokenLife)},
	{"OAUTH_AUTHORIZATION_CODE_TTL_SECONDS", readBy(CodeLife)},
	{"OAUTH_REFRESH_TOKEN_TTL_SECONDS", readBy(RefreshTokenLife)},
	{"SHOAL_ASK_RETENTION_DAYS", readBy(ThreadDays)},
	{"SHOAL_OAUTH_CIMD", wantSwitch},
	{"SHOAL_OAUTH_CLIENT_HOSTS", anyText},
	{"SHOAL_OAUTH_REFRESH_GRACE", readBy(RefreshGrace)},
	{"SOURCEBOT_CHAT_MAX_STEP_COUNT", wantCount},

	// Indexing and searching.
	{"ALWAYS_INDEX_FILE_PATTERNS", anyText},
	{"DEFAULT_MAX_MATCH_COUNT", wantCount},

	// Code hosts.
	{"FALLBACK_GITEA_CLOUD_TOKEN", anyText},
	{"FALLBACK_GITHUB_CLOUD_TOKEN", anyText},
	{"FALLBACK_GITLAB_CLOUD_TOKEN", anyText},
	{"GITLAB_CLIENT_QUERY_TIMEOUT_SECONDS", wantCount},

	// Providers of models.
	{"ANTHROPIC_API_KEY", anyText},
	{"ANTHROPIC_AUTH_TOKEN", anyText},
	{"ANTHROPIC_THINKING_BUDGET_TOKENS", wantCount},
	{"AWS_ACCESS_KEY_ID", anyText},
	{"AWS_BEARER_TOKEN_BEDROCK", anyText},
	{"AWS_REGION", wantLabel},
	{"AWS_SECRET_ACCESS_KEY", anyText},
	{"AWS_SESSION_TOKEN", anyText},
	{"AZURE_API_KEY", anyText},
	{"AZURE_RESOURCE_NAME", wantLabel},
	{"DEEPSEEK_API_KEY", anyText},
	{"GOOGLE_GENERATIVE_AI_API_KEY", anyText},
	{"GOOGLE_VERTEX_PROJECT", anyText},
	{"GOOGLE_VERTEX_REGION", wantLabel},
	{"GOOGLE_VERTEX_THINKING_BUDGET_TOKENS", wantCount},
	{"MISTRAL_API_KEY", anyText},
	{"OPENAI_API_KEY", anyText},
	{"OPENROUTER_API_KEY", anyText},
	{"XAI_API_KEY", anyText},
}

// Variables are the variables that a node reads while it runs.
func Variables() []Variable { return slices.Clone(variables) }

// checkVariable refuses the value of a variable that cannot be read, and one
// that asks for what there is not; it has nothing against other variables that
// no node reads.
func checkVariable(name, value string) error {
	for _, v := range slices.Concat(variables, refused) {
		if v.Name == name {
			return v.Check(value)
		}
	}
	return nil
}

// refused are variables that no node reads, of which some value asks for so much
// that a node which passed over it would do harm.
var refused = []Variable{
	{"AUTH_EMAIL_CODE_LOGIN_ENABLED", func(value string) error {
		if value = strings.ToLower(strings.TrimSpace(value)); value == "" || value == "false" {
			return nil
		}
		return unreadable("There is no sign-in by a code that is sent: Shoal sends no e-mail. Take it out, or set false; people come in by a password, a link that an owner makes, or an identity provider.")
	}},
}

// unread are variables that files and environments of before may have, which no
// node reads, and what takes their place.
var unread = []struct {
	names []string
	why   string
}{
	{[]string{"AUTH_EMAIL_CODE_LOGIN_ENABLED"}, "It has no effect: Shoal sends no e-mail."},
	{[]string{"AUTH_SECRET", "SOURCEBOT_ENCRYPTION_KEY"}, "It has no effect: the cluster key takes its place (--cluster-key-file)."},
	{[]string{"DATABASE_URL", "DATABASE_HOST", "DATABASE_NAME", "DATABASE_USERNAME", "DATABASE_PASSWORD", "DATABASE_ARGS", "REDIS_URL"}, "It has no effect: Shoal needs no database; what it keeps is in --data-dir."},
	{[]string{"DATA_DIR", "DATA_CACHE_DIR"}, "It has no effect: give --data-dir or SHOAL_DATA_DIR to `shoal serve`."},
	{[]string{"EMAIL_FROM_ADDRESS", "SMTP_CONNECTION_URL", "SMTP_HOST", "SMTP_PASSWORD", "SMTP_PORT", "SMTP_USERNAME"}, "It has no effect: Shoal sends no e-mail. An owner hands on the links that `shoal user create` and `shoal user reset` print."},
	{[]string{"PERMISSION_SYNC_REPO_DRIVEN_ENABLED"}, "It has no effect: where PERMISSION_SYNC_ENABLED is true, code hosts are asked both of people and of repositories."},
	{[]string{"SOURCEBOT_EE_LICENSE_KEY", "SOURCEBOT_LIGHTHOUSE_URL", "SOURCEBOT_PUBLIC_KEY_PATH"}, "It has no effect: Shoal needs no licence and asks for none."},
	{[]string{"SOURCEBOT_LOG_LEVEL", "SOURCEBOT_STRUCTURED_LOGGING_ENABLED", "SOURCEBOT_STRUCTURED_LOGGING_FILE"}, "It has no effect: give --log-level and --log-format to `shoal serve`; the log goes to standard error."},
	{[]string{"SOURCEBOT_TELEMETRY_DISABLED", "SOURCEBOT_TELEMETRY_PII_COLLECTION_ENABLED"}, "It has no effect: Shoal sends nothing about its use to anybody."},
	{[]string{"SOURCEBOT_LLM_USER_EMAIL_HEADER_ENABLED"}, "It has no effect: addresses of people are never sent to providers of models."},
}

// Unread lists the variables of [WhyUnread], sorted.
func Unread() (names []string) {
	for _, row := range unread {
		names = append(names, row.names...)
	}
	slices.Sort(names)
	return names
}

// WhyUnread is what to do instead of setting a variable that other services of
// this kind have and Shoal has not, as a sentence; "" for any other variable.
func WhyUnread(name string) string {
	for _, row := range unread {
		if slices.Contains(row.names, name) {
			return row.why
		}
	}
	return ""
}

// Refused are the variables that no node reads and of which some value stops the
// start of a node.
func Refused() []Variable { return slices.Clone(refused) }

// nodesOwn are variables that each node takes from its own environment, whatever
// a file says, and why.
var nodesOwn = []struct {
	names []string
	why   string
}{
	{[]string{"AUTH_URL", "SHOAL_BASE_URL"}, "It has no effect here. Give it to `shoal serve` on every node (or --base-url): links, cookies and the names that a node answers to go by it before there is a configuration."},
	{[]string{"SHOAL_EMBED_ANCESTORS"}, "It has no effect here. Give it to `shoal serve` on every node (or --embed-ancestors): which sites may show files is a matter of who runs the nodes."},
	{[]string{"CTAGS_COMMAND"}, "It has no effect here. Give it to `shoal serve` (or --ctags): a file that all nodes take does not say which programs they run."},
	{[]string{"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}, "It has no effect here. Give it to `shoal serve` on the nodes that need it: which proxy leads out is a matter of where a node stands."},
	{[]string{"SHOAL_HOST_RECORD"}, "It has no effect here. Give it to `shoal serve` or `shoal config check --online`: it names a directory of that machine."},
}

// withoutEffect is why an override does nothing, "" for one that does something.
func withoutEffect(name string) string {
	// Of a variable that a node takes from its own environment the sentence says where to give it.
	if slices.ContainsFunc(variables, func(v Variable) bool { return v.Name == name }) {
		return ""
	}
	for _, row := range nodesOwn {
		if slices.Contains(row.names, name) {
			return row.why
		}
	}
	if why := WhyUnread(name); why != "" {
		return why
	}
	return "It has no effect here: no node reads this variable from a file. Give it to `shoal serve` if that has it."
}

// LeastPermissionAge is the least bound that PermissionAge gives.
const LeastPermissionAge = time.Minute

// PermissionAge is for how long a node may have missed changes and still believe
// credentials, by SHOAL_MAX_PERMISSION_AGE; 0 for ever. What cannot be read is
// the usual one, and an error.
func PermissionAge(text string) (time.Duration, error) {
	const usual = 10 * time.Minute
	text = strings.TrimSpace(text)
	d, err := time.ParseDuration(text)
	switch {
	case text == "":
		return usual, nil
	case err != nil || d < 0 || d > 0 && d < LeastPermissionAge:
		return usual, unreadable("It must be a duration of at least a minute, as 10m, or 0 for no bound.")
	}
	return d, nil
}

// RefreshGrace is for how long the refresh token before the newest one is good,
// by SHOAL_OAUTH_REFRESH_GRACE. What cannot be read is the usual one, and an
// error.
func RefreshGrace(text string) (time.Duration, error) {
	const usual, most = time.Minute, 30 * time.Minute
	text = strings.TrimSpace(text)
	d, err := time.ParseDuration(text)
	switch {
	case text == "":
		return usual, nil
	case err != nil || d < 0 || d > most:
		return usual, unreadable("It must be a duration, as 60s, at most 30m.")
	}
	return d, nil
}

// CodeLife is for how long a code that an agent is sent back with is good, by
// OAUTH_AUTHORIZATION_CODE_TTL_SECONDS. What cannot be read is the usual time,
// and an error; so it is of the two below.
func CodeLife(text string) (time.Duration, error) {
	return secondsOf(text, time.Minute, 10*time.Second, 10*time.Minute)
}

// AccessTokenLife is for how long an access token of an agent is good, by
// OAUTH_ACCESS_TOKEN_TTL_SECONDS.
func AccessTokenLife(text string) (time.Duration, error) {
	return secondsOf(text, time.Hour, time.Minute, MostAccessTokenLife)
}

// RefreshTokenLife is for how long an agent that does not ask for tokens may come
// back, by OAUTH_REFRESH_TOKEN_TTL_SECONDS.
func RefreshTokenLife(text string) (time.Duration, error) {
	return secondsOf(text, 90*24*time.Hour, time.Hour, MostRefreshTokenLife)
}

// The longest times that tokens of agents may be good for.
const (
	MostAccessTokenLife  = 24 * time.Hour
	MostRefreshTokenLife = 180 * 24 * time.Hour
)

// secondsOf reads a whole number of seconds; "" is the usual one.
func secondsOf(text string, usual, least, most time.Duration) (time.Duration, error) {
	n, err := wholeNumber(text, int(usual/time.Second), int(least/time.Second), int(most/time.Second), "seconds")
	return time.Duration(n) * time.Second, err
}

// The bounds of variables that are numbers.
const (
	mostDays      = 36_500 // which no duration overflows by
	mostCount     = 1_000_000
	mostMegabytes = 1 << 30
)

// ThreadDays is for how many days threads are kept after they changed, by
// SHOAL_ASK_RETENTION_DAYS. What cannot be read is the usual number, and an error.
func ThreadDays(text string) (int, error) { return wholeNumber(text, 90, 1, mostDays, "days") }

// AuditDays is for how many days the audit is kept, by
// SOURCEBOT_EE_AUDIT_RETENTION_DAYS; 0 for as long as there is room. What cannot
// be read is the usual number, and an error.
func AuditDays(text string) (int, error) { return wholeNumber(text, 180, 0, mostDays, "days") }

// AuditDisk is how many megabytes the accesses of a node may take, by
// SHOAL_AUDIT_DISK_MB; 0 for none. What cannot be read is the usual number, and
// an error.
func AuditDisk(text string) (int, error) {
	return wholeNumber(text, 4096, 0, mostMegabytes, "megabytes")
}

// Queries is how much the audit keeps of what people look for.
type Queries string

// What may be kept of queries.
const (
	NoQueries     Queries = "off"
	HashedQueries Queries = "hash" // equal ones can be told, the text cannot
	WholeQueries  Queries = "full"
)

// AuditQueries is how much of queries is kept, by SHOAL_AUDIT_QUERIES. What
// cannot be read is nothing of them, and an error.
func AuditQueries(text string) (Queries, error) {
	switch q := Queries(strings.ToLower(strings.TrimSpace(text))); q {
	case "":
		return NoQueries, nil
	case NoQueries, HashedQueries, WholeQueries:
		return q, nil
	}
	return NoQueries, unreadable("It must be off, hash or full.")
}

// wholeNumber reads a whole number of something; "" is the usual one.
func wholeNumber(text string, usual, least, most int, of string) (int, error) {
	if text = strings.TrimSpace(text); text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return usual, unreadable(fmt.Sprintf("It must be a whole number of %s from %d to %d.", of, least, most))
	}
	return n, nil
}

// unreadable is what is wrong with a value, as a sentence for people.
type unreadable string

func (u unreadable) Error() string { return string(u) }

// readBy refuses what the reader of a variable refuses.
func readBy[T any](read func(text string) (T, error)) func(string) error {
	return func(text string) error {
		_, err := read(text)
		return err
	}
}

func anyText(string) error { return nil }

// wantLabel takes what may be one part of a host name: with another sign it could lead to
// a host of somebody else.
func wantLabel(value string) error {
	part := func(r rune) bool {
		return r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if strings.ContainsFunc(strings.TrimSpace(value), func(r rune) bool { return !part(r) }) {
		return unreadable("It must have letters, digits and hyphens only.")
	}
	return nil
}

func wantFlag(value string) error {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "true", "false":
		return nil
	}
	return unreadable("It must be true or false.")
}

// wantBool takes what [strconv.ParseBool] takes, 1 and 0 too.
func wantBool(value string) error {
	if _, err := strconv.ParseBool(strings.TrimSpace(value)); strings.TrimSpace(value) != "" && err != nil {
		return unreadable("It must be true or false.")
	}
	return nil
}

func wantSwitch(value string) error {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "on", "off":
		return nil
	}
	return unreadable("It must be on or off.")
}

func wantCount(value string) error {
	if value = strings.TrimSpace(value); value == "" {
		return nil
	}
	if n, err := strconv.Atoi(value); err != nil || n < 1 || n > mostCount {
		return unreadable(fmt.Sprintf("It must be a whole number from 1 to %d.", mostCount))
	}
	return nil
}

func wantSeconds(value string) error {
	const least, most = 60, 365 * 86400
	if _, err := wholeNumber(value, least, least, most, "seconds"); err != nil {
		return unreadable("It must be a whole number of seconds, from a minute to a year.")
	}
	return nil
}
