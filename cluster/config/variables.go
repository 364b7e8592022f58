package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/glob"
)

// Variable is a variable that a node reads while it runs: from the overrides of the configuration,
// otherwise from its environment.
type Variable struct {
	Name  string
	Check func(value string) error // returns an error for an invalid value; "" is valid
	Means string                   // what it means, as a phrase
}

// variables lists them all. An invalid value is an error, both at the start of a node and in a
// file. If it were ignored, the default could open what someone wanted to close.
var variables = []Variable{
	// People and their rights.
	{"AUTH_CREDENTIALS_LOGIN_ENABLED", requireFlag, "false: nobody signs in by password"},
	{"AUTH_URL", checkByParsing(BaseURL), "prefix of every link of a node without --base-url"},
	{"AUTH_EE_ALLOW_EMAIL_ACCOUNT_LINKING", requireFlag, "false: no e-mail address leads to an account that was there before"},
	{"AUTH_EE_GCP_IAP_AUDIENCE", anyText, "the audience of AUTH_EE_GCP_IAP_ENABLED"},
	{"AUTH_EE_GCP_IAP_ENABLED", requireFlag, "true: people come in through Google's proxy"},
	{"AUTH_SESSION_MAX_AGE_SECONDS", requireSeconds, "a session ends after so long without use"},
	{"AUTH_SESSION_UPDATE_AGE_SECONDS", requireSeconds, "how often the use of a session is noted"},
	{"DISABLE_API_KEY_CREATION_FOR_NON_OWNER_USERS", requireFlag, "true: members make no API keys"},
	{"DISABLE_API_KEY_USAGE_FOR_NON_OWNER_USERS", requireFlag, "true: keys of members are refused"},
	{"FORCE_ENABLE_ANONYMOUS_ACCESS", requireBool, "true: people without a key may search"},
	{"REQUIRE_APPROVAL_NEW_MEMBERS", requireFlag, "false: new people are active at once"},
	{"SHOAL_ALLOWED_EMAIL_DOMAINS", anyText, "domains of new people, separated by commas"},
	{"SHOAL_MAX_PERMISSION_AGE", checkByParsing(PermissionAge), "signed-in requests are refused after so long without a leader; 0 never"},
	{"SHOAL_OPERATOR_SOCKET", requireBool, "false: commands on the node's host need a key"},

	// Letters with links to sign in.
	{"EMAIL_FROM_ADDRESS", anyText, "the address that letters with links come from"},
	{"SMTP_CONNECTION_URL", anyText, "the mail server that sends links: smtp://USER:PASSWORD@HOST:587 with STARTTLS, smtps://HOST:465 with TLS"},
	{"SMTP_HOST", anyText, "the mail server, in place of a URL"},
	{"SMTP_PASSWORD", anyText, "the password at the mail server"},
	{"SMTP_PASSWORD_FILE", anyText, "a file with that password, read for each letter"},
	{"SMTP_PORT", requireCount, "the port of SMTP_HOST, 587 without it; 465 means TLS from the first byte"},
	{"SMTP_USERNAME", anyText, "the user at the mail server"},

	// Permissions and the audit.
	{"EXPERIMENT_EE_PERMISSION_SYNC_ENABLED", requireBool, "the former name of PERMISSION_SYNC_ENABLED"},
	{"PERMISSION_SYNC_ENABLED", requireBool, "true: code hosts say who may see what"},
	{"SHOAL_AUDIT_DISK_MB", checkByParsing(AuditDisk), "most disk for accesses in the audit, in MB"},
	{"SHOAL_AUDIT_QUERIES", checkByParsing(AuditQueries), "what the audit keeps of queries"},
	{"SOURCEBOT_EE_AUDIT_LOGGING_ENABLED", requireBool, "false: no accesses in the audit"},
	{"SOURCEBOT_EE_AUDIT_RETENTION_DAYS", checkByParsing(AuditDays), "accesses in the audit are kept so many days; 0 for ever"},

	// Agents and chat.
	{"OAUTH_ACCESS_TOKEN_TTL_SECONDS", checkByParsing(AccessTokenLife), "how long an access token of an agent is good"},
	{"OAUTH_AUTHORIZATION_CODE_TTL_SECONDS", checkByParsing(CodeLife), "how long an authorization code is good"},
	{"OAUTH_REFRESH_TOKEN_TTL_SECONDS", checkByParsing(RefreshTokenLife), "how long a refresh token is good"},
	{"SHOAL_ASK_RETENTION_DAYS", checkByParsing(ThreadDays), "threads go so many days after their last change"},
	{"SHOAL_OAUTH_CIMD", requireSwitch, "off: no clients that name themselves by an address"},
	{"SHOAL_OAUTH_CLIENT_HOSTS", anyText, "hosts whose clients may ask people for access, separated by commas"},
	{"SHOAL_OAUTH_REFRESH_GRACE", checkByParsing(RefreshGrace), "how long the former refresh token is good after a new one"},
	{"SOURCEBOT_CHAT_MAX_STEP_COUNT", requireCount, "most steps of an answer"},

	// Watches.
	{"SHOAL_WATCH_RECEIVERS", anyText, "any: webhooks of watches may go to private addresses, and without TLS"},

	// Indexing and searching.
	{"ALWAYS_INDEX_FILE_PATTERNS", requireGlobs, "globs of files that are indexed whatever their size, separated by commas"},
	{"DEFAULT_MAX_MATCH_COUNT", requireCount, "how many matches a page of results asks for"},

	// Traces of searches.
	{"OTEL_EXPORTER_OTLP_ENDPOINT", anyText, "the collector that traces of searches are sent to, by HTTP; none without it"},
	{"OTEL_EXPORTER_OTLP_PROTOCOL", anyText, "http/protobuf, which is the one protocol"},
	{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", anyText, "the whole address of the collector for traces"},

	// Code hosts.
	{"FALLBACK_GITEA_CLOUD_TOKEN", anyText, "token for gitea.com where a connection has none"},
	{"FALLBACK_GITHUB_CLOUD_TOKEN", anyText, "token for github.com where a connection has none"},
	{"FALLBACK_GITLAB_CLOUD_TOKEN", anyText, "token for gitlab.com where a connection has none"},
	{"GITLAB_CLIENT_QUERY_TIMEOUT_SECONDS", requireCount, "how long an answer of GitLab may take"},

	// Providers of models.
	{"ANTHROPIC_API_KEY", anyText, "key for Anthropic where a model has none"},
	{"ANTHROPIC_AUTH_TOKEN", anyText, "token for Anthropic in place of a key"},
	{"ANTHROPIC_THINKING_BUDGET_TOKENS", requireCount, "tokens that models of Anthropic may think"},
	{"AWS_ACCESS_KEY_ID", anyText, "key id for Bedrock"},
	{"AWS_BEARER_TOKEN_BEDROCK", anyText, "token for Bedrock in place of a key"},
	{"AWS_REGION", requireLabel, "region of Bedrock"},
	{"AWS_SECRET_ACCESS_KEY", anyText, "secret key for Bedrock"},
	{"AWS_SESSION_TOKEN", anyText, "session token for Bedrock"},
	{"AZURE_API_KEY", anyText, "key for Azure where a model has none"},
	{"AZURE_RESOURCE_NAME", requireLabel, "resource of Azure"},
	{"DEEPSEEK_API_KEY", anyText, "key for DeepSeek where a model has none"},
	{"GOOGLE_GENERATIVE_AI_API_KEY", anyText, "key for Gemini where a model has none"},
	{"GOOGLE_VERTEX_PROJECT", anyText, "project of Vertex AI"},
	{"GOOGLE_VERTEX_REGION", requireLabel, "region of Vertex AI"},
	{"GOOGLE_VERTEX_THINKING_BUDGET_TOKENS", requireCount, "tokens that models of Vertex AI may think"},
	{"MISTRAL_API_KEY", anyText, "key for Mistral where a model has none"},
	{"OPENAI_API_KEY", anyText, "key for OpenAI where a model has none"},
	{"OPENROUTER_API_KEY", anyText, "key for OpenRouter where a model has none"},
	{"XAI_API_KEY", anyText, "key for xAI where a model has none"},
}

// Variables returns the variables that a node reads while it runs.
func Variables() []Variable { return slices.Clone(variables) }

// checkVariable returns an error for a value that cannot be parsed, or that requests a feature we
// do not have. It ignores unknown variables.
func checkVariable(name, value string) error {
	for _, v := range slices.Concat(variables, refusedVariables) {
		if v.Name == name {
			return v.Check(value)
		}
	}
	return nil
}

// refusedVariables lists variables that no node reads, but which have a harmful value: a node that ignored
// it would not do what the operator relies on.
var refusedVariables = []Variable{
	{"AUTH_EMAIL_CODE_LOGIN_ENABLED", func(value string) error {
		if value = strings.ToLower(strings.TrimSpace(value)); value == "" || value == "false" {
			return nil
		}
		return unreadable("There is no sign-in by a code that is sent. Take it out, or set false; people come in by a password, a link that an owner makes, or an identity provider.")
	}, "asks for sign-in by a code that is sent"},
}

// unreadVariables lists variables of Sourcebot that no node reads, with the replacement of each.
var unreadVariables = []struct {
	names []string
	why   string
}{
	{[]string{"AUTH_EMAIL_CODE_LOGIN_ENABLED"}, "It has no effect: Shoal sends no codes."},
	{[]string{"AUTH_SECRET", "SOURCEBOT_ENCRYPTION_KEY"}, "It has no effect: the cluster key takes its place (--cluster-key-file)."},
	{[]string{"DATABASE_URL", "DATABASE_HOST", "DATABASE_NAME", "DATABASE_USERNAME", "DATABASE_PASSWORD", "DATABASE_ARGS", "REDIS_URL"}, "It has no effect: Shoal needs no database; what it keeps is in --data-dir."},
	{[]string{"DATA_DIR", "DATA_CACHE_DIR"}, "It has no effect: give --data-dir or SHOAL_DATA_DIR to `shoal serve`."},
	{[]string{"PERMISSION_SYNC_REPO_DRIVEN_ENABLED"}, "It has no effect: where PERMISSION_SYNC_ENABLED is true, code hosts are asked both of people and of repositories."},
	{[]string{"SOURCEBOT_EE_LICENSE_KEY", "SOURCEBOT_LIGHTHOUSE_URL", "SOURCEBOT_PUBLIC_KEY_PATH"}, "It has no effect: Shoal needs no licence and asks for none."},
	{[]string{"SOURCEBOT_LOG_LEVEL", "SOURCEBOT_STRUCTURED_LOGGING_ENABLED", "SOURCEBOT_STRUCTURED_LOGGING_FILE"}, "It has no effect: give --log-level and --log-format to `shoal serve`; the log goes to standard error."},
	{[]string{"SOURCEBOT_TELEMETRY_DISABLED", "SOURCEBOT_TELEMETRY_PII_COLLECTION_ENABLED"}, "It has no effect: Shoal sends nothing about its use to anybody."},
	{[]string{"NODE_EXTRA_CA_CERTS"}, "It has no effect: name your authorities by SSL_CERT_FILE, with the public ones behind them in the same file if you need both."},
	{[]string{"NODE_USE_ENV_PROXY"}, "It has no effect: HTTPS_PROXY, HTTP_PROXY and NO_PROXY always count."},
	{[]string{"SOURCEBOT_CHAT_MODEL_TEMPERATURE", "SOURCEBOT_CHAT_PROMPT_CACHING_ENABLED", "SOURCEBOT_CHAT_PROMPT_CACHE_STATIC_TTL", "SOURCEBOT_CHAT_PROMPT_CACHE_BREAK_DETECTION_ENABLED"}, "It has no effect: set what a model takes in models of the configuration."},
	{[]string{"SOURCEBOT_CHAT_ATTACHMENT_MAX_IMAGE_BYTES", "SOURCEBOT_CHAT_ATTACHMENT_ORPHAN_TTL_HOURS"}, "It has no effect: questions have no attachments."},
	{[]string{"SOURCEBOT_MCP_TOOL_CALL_TIMEOUT_MS"}, "It has no effect: Shoal calls no other tool servers."},
	{[]string{"REVIEW_AGENT_API_KEY", "REVIEW_AGENT_AUTO_REVIEW_ENABLED", "REVIEW_AGENT_LOGGING_ENABLED", "REVIEW_AGENT_MODEL", "REVIEW_AGENT_REVIEW_COMMAND", "GITHUB_REVIEW_AGENT_APP_ID", "GITHUB_REVIEW_AGENT_APP_PRIVATE_KEY_PATH", "GITHUB_REVIEW_AGENT_APP_WEBHOOK_SECRET",
		"GITLAB_REVIEW_AGENT_HOST", "GITLAB_REVIEW_AGENT_TOKEN", "GITLAB_REVIEW_AGENT_WEBHOOK_SECRET"}, "It has no effect: Shoal reviews no changes."},
	{[]string{"ZOEKT_WEBSERVER_URL", "WORKER_API_URL"}, "It has no effect: a node searches and indexes by itself."},
	{[]string{"WEB_METRICS_PORT"}, "It has no effect: give --metrics-listen to `shoal serve`."},
	{[]string{"CHANGELOG_ENABLED", "CHANGELOG_FEED_URL", "SECURITY_CARD_ENABLED"}, "It has no effect: pages show no news."},
	{[]string{"CONFIG_MAX_REPOS_NO_TOKEN", "EXPERIMENT_SELF_SERVE_REPO_INDEXING_ENABLED", "EXPERIMENT_SELF_SERVE_REPO_INDEXING_GITHUB_TOKEN", "REPO_SYNC_RETRY_BASE_SLEEP_SECONDS", "SKIP_ENV_VALIDATION", "SOURCEBOT_DEMO_EXAMPLES_PATH"}, "It has no effect: nothing takes its place."},
	{[]string{"REDIS_REMOVE_ON_COMPLETE", "REDIS_REMOVE_ON_FAIL", "REDIS_TLS_CA_PATH", "REDIS_TLS_CERT_PATH", "REDIS_TLS_ENABLED", "REDIS_TLS_KEY_PATH"}, "It has no effect: Shoal needs no Redis."},
	{[]string{"SOURCEBOT_LLM_USER_EMAIL_HEADER_ENABLED"}, "It has no effect: addresses of people are never sent to providers of models."},
}

// Unread returns the variables that Sourcebot has and Shoal does not read, sorted: see [WhyUnread].
func Unread() (names []string) {
	for _, row := range unreadVariables {
		names = append(names, row.names...)
	}
	slices.Sort(names)
	return names
}

// WhyUnread returns what to do instead of setting a variable that Sourcebot has and Shoal does not.
// It returns "" for any other variable.
func WhyUnread(name string) string {
	for _, row := range unreadVariables {
		if slices.Contains(row.names, name) {
			return row.why
		}
	}
	return ""
}

// Refused returns the variables that no node reads, but which have a value that stops the start of
// a node.
func Refused() []Variable { return slices.Clone(refusedVariables) }

// mailServer is the variables about the server that sends letters.
var mailServer = []string{"EMAIL_FROM_ADDRESS", "SMTP_CONNECTION_URL", "SMTP_HOST", "SMTP_PASSWORD", "SMTP_PASSWORD_FILE", "SMTP_PORT", "SMTP_USERNAME"}

// nodeVariables lists variables that each node reads only from its own environment, with the reason.
var nodeVariables = []struct {
	names []string
	why   string
}{
	{[]string{"SHOAL_BASE_URL"}, "It has no effect here. Set AUTH_URL, or give it to `shoal serve` (or --base-url) on the nodes whose links have another prefix than those of the rest."},
	{[]string{"SHOAL_EMBED_ANCESTORS"}, "It has no effect here. Give it to `shoal serve` on every node (or --embed-ancestors): which sites may show files is a matter of who runs the nodes."},
	{mailServer, "It has no effect here. Give it to `shoal serve` on every node: a file that all nodes take must not name another server for the password that a node has."},
	{[]string{"CTAGS_COMMAND"}, "It has no effect here. Give it to `shoal serve` (or --ctags): a file that all nodes take does not say which programs they run."},
	{[]string{"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}, "It has no effect here. Give it to `shoal serve` on the nodes that need it: which proxy leads out is a matter of where a node stands."},
	{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}, "It has no effect here. Give it to `shoal serve` on every node: where traces go is a matter of who runs the nodes."},
	{[]string{"SHOAL_HOST_RECORD"}, "It has no effect here. Give it to `shoal serve` or `shoal config check --online`: it names a directory of that machine."},
}

// whyNoEffect returns why an override has no effect, or "" if it has one.
func whyNoEffect(name string) string {
	for _, row := range nodeVariables {
		if slices.Contains(row.names, name) {
			return row.why
		}
	}
	if slices.ContainsFunc(variables, func(v Variable) bool { return v.Name == name }) {
		return ""
	}
	if why := WhyUnread(name); why != "" {
		return why
	}
	return "It has no effect here: no node reads this variable from a file. Give it to `shoal serve` if that has it."
}

// LeastPermissionAge is the least value of PermissionAge, except 0.
const LeastPermissionAge = time.Minute

// PermissionAge parses SHOAL_MAX_PERMISSION_AGE: for how long a node without news from the cluster
// still accepts credentials; 0: for ever. For an invalid value it returns the default and an error.
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

// RefreshGrace parses SHOAL_OAUTH_REFRESH_GRACE: for how long the previous refresh token stays
// valid. For an invalid value it returns the default and an error.
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

// CodeLife parses OAUTH_AUTHORIZATION_CODE_TTL_SECONDS: the lifetime of an authorization code. For
// an invalid value it returns the default and an error.
func CodeLife(text string) (time.Duration, error) {
	return secondsOf(text, time.Minute, 10*time.Second, 10*time.Minute)
}

// AccessTokenLife parses OAUTH_ACCESS_TOKEN_TTL_SECONDS: the lifetime of an agent's access token.
// For an invalid value it returns the default and an error.
func AccessTokenLife(text string) (time.Duration, error) {
	return secondsOf(text, time.Hour, time.Minute, MostAccessTokenLife)
}

// RefreshTokenLife parses OAUTH_REFRESH_TOKEN_TTL_SECONDS: for how long an idle agent can still get
// tokens. For an invalid value it returns the default and an error.
func RefreshTokenLife(text string) (time.Duration, error) {
	return secondsOf(text, 90*24*time.Hour, time.Hour, MostRefreshTokenLife)
}

// The longest lifetimes of agents' tokens.
const (
	MostAccessTokenLife  = 24 * time.Hour
	MostRefreshTokenLife = 180 * 24 * time.Hour
)

// BaseURL parses AUTH_URL: the prefix of every link, without a trailing slash; "": none.
func BaseURL(text string) (string, error) {
	text = strings.TrimRight(strings.TrimSpace(text), "/")
	u, err := url.Parse(text)
	if text != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		return "", unreadable("It must be an address, as https://code.example.com.")
	}
	return text, nil
}

// secondsOf parses a whole number of seconds; "" gives defaultValue.
func secondsOf(text string, defaultValue, least, most time.Duration) (time.Duration, error) {
	n, err := parseWholeNumber(text, int(defaultValue/time.Second), int(least/time.Second), int(most/time.Second), "seconds")
	return time.Duration(n) * time.Second, err
}

// The upper limits of numeric variables.
const (
	maxDays      = 36_500 // as a duration it does not overflow
	maxCount     = 1_000_000
	maxMegabytes = 1 << 30
)

// ThreadDays parses SHOAL_ASK_RETENTION_DAYS: for how many days threads stay after their last
// change. For an invalid value it returns the default and an error.
func ThreadDays(text string) (int, error) { return parseWholeNumber(text, 90, 1, maxDays, "days") }

// AuditDays parses SOURCEBOT_EE_AUDIT_RETENTION_DAYS: for how many days audit events stay; 0: as
// long as there is room. For an invalid value it returns the default and an error.
func AuditDays(text string) (int, error) { return parseWholeNumber(text, 180, 0, maxDays, "days") }

// AuditDisk parses SHOAL_AUDIT_DISK_MB: the maximal disk space for audited accesses on a node, in
// megabytes; 0: none are stored. For an invalid value it returns the default and an error.
func AuditDisk(text string) (int, error) {
	return parseWholeNumber(text, 4096, 0, maxMegabytes, "megabytes")
}

// Queries is how much of search queries the audit stores.
type Queries string

// The values of Queries.
const (
	NoQueries     Queries = "off"
	HashedQueries Queries = "hash" // equal queries can be recognized, but not read
	WholeQueries  Queries = "full"
)

// AuditQueries parses SHOAL_AUDIT_QUERIES. For an invalid value it returns NoQueries and an error.
func AuditQueries(text string) (Queries, error) {
	switch q := Queries(strings.ToLower(strings.TrimSpace(text))); q {
	case "":
		return NoQueries, nil
	case NoQueries, HashedQueries, WholeQueries:
		return q, nil
	}
	return NoQueries, unreadable("It must be off, hash or full.")
}

// parseWholeNumber parses a whole number; "" gives defaultValue. Messages name the unit.
func parseWholeNumber(text string, defaultValue, least, most int, unit string) (int, error) {
	if text = strings.TrimSpace(text); text == "" {
		return defaultValue, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return defaultValue, unreadable(fmt.Sprintf("It must be a whole number of %s from %d to %d.", unit, least, most))
	}
	return n, nil
}

// unreadable is an error about a value, as a sentence for users.
type unreadable string

func (u unreadable) Error() string { return string(u) }

// checkByParsing returns a Check that rejects what the parser of a variable rejects.
func checkByParsing[T any](read func(text string) (T, error)) func(string) error {
	return func(text string) error {
		_, err := read(text)
		return err
	}
}

func anyText(string) error { return nil }

func requireGlobs(value string) error {
	for _, p := range glob.Split(value) {
		if err := glob.Check(p); err != nil {
			return unreadable(fmt.Sprintf("%q is no glob: %v.", p, err))
		}
	}
	return nil
}

// requireLabel accepts only characters of one label of a host name. Other characters could lead to
// another host.
func requireLabel(value string) error {
	isAllowed := func(r rune) bool {
		return r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if strings.ContainsFunc(strings.TrimSpace(value), func(r rune) bool { return !isAllowed(r) }) {
		return unreadable("It must have letters, digits and hyphens only.")
	}
	return nil
}

func requireFlag(value string) error {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "true", "false":
		return nil
	}
	return unreadable("It must be true or false.")
}

// requireBool accepts "" and what [strconv.ParseBool] accepts, including 1 and 0.
func requireBool(value string) error {
	if value = strings.TrimSpace(value); value == "" {
		return nil
	}
	if _, err := strconv.ParseBool(value); err != nil {
		return unreadable("It must be true or false.")
	}
	return nil
}

func requireSwitch(value string) error {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "on", "off":
		return nil
	}
	return unreadable("It must be on or off.")
}

func requireCount(value string) error {
	if value = strings.TrimSpace(value); value == "" {
		return nil
	}
	if n, err := strconv.Atoi(value); err != nil || n < 1 || n > maxCount {
		return unreadable(fmt.Sprintf("It must be a whole number from 1 to %d.", maxCount))
	}
	return nil
}

func requireSeconds(value string) error {
	const least, most = 60, 365 * 86400
	if _, err := parseWholeNumber(value, least, least, most, "seconds"); err != nil {
		return unreadable("It must be a whole number of seconds, from a minute to a year.")
	}
	return nil
}
