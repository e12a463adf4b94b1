// Package secrettext detects and masks text that looks like a secret.
//
// It depends on no records, so that everything that shows or stores a text can use it.
package secrettext

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// dots replace masked text.
const dots = "••••"

// There are three kinds of keys that are recognized anywhere: a key with a known prefix, a
// URL with a password, and a value after the name of a secret.

// secretText matches the first kind, as documented by the issuers. Compiling it takes half
// a millisecond, so it is done only when needed.
var secretText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`nize_[A-Za-z0-9_-]{16,}`,
		`gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}`,
		`gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas)-[A-Za-z0-9_-]{20,}`, // GitLab
		`xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}`,
		`hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]+`,
		`discord(?:app)?\.com/api/webhooks/\d+/[A-Za-z0-9_-]+`,
		`\d{8,10}:AA[A-Za-z0-9_-]{33}`,                                    // Telegram's bots
		`sk-[A-Za-z0-9_-]{16,}|\b(?:gsk_|xai-|hf_|pplx-)[A-Za-z0-9]{20,}`, // model providers
		`(?:AKIA|ASIA)[0-9A-Z]{16}`,                                       // Amazon
		`AIza[0-9A-Za-z_-]{35}|GOCSPX-[A-Za-z0-9_-]{16,}|ya29\.[A-Za-z0-9_-]{20,}`,
		`(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{16,}`, // Stripe
		`\bnpm_[A-Za-z0-9]{20,}|\bpypi-[A-Za-z0-9_-]{32,}|dckr_pat_[A-Za-z0-9_-]{16,}`,
		`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, // SendGrid
		`\bshp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}`,         // Shopify
		`\bdo[opr]_v1_[a-f0-9]{32,}`,                   // DigitalOcean
		`\bATATT3[A-Za-z0-9_=-]{20,}`,                  // Atlassian
		`\bhvs\.[A-Za-z0-9_-]{20,}`,                    // Vault
		`\b(?:ntn_|lin_api_|figd_|sntrys_)[A-Za-z0-9_=+/-]{20,}`,
		`AGE-SECRET-KEY-1[0-9A-Z]{20,}`,
		`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, // a JSON Web Token, RFC 7519
		`(?i:accountkey)=[A-Za-z0-9+/]{40,}={0,2}`,                  // Azure
		`(?i:bearer)\s+[A-Za-z0-9._~+/=-]{12,}`,
		`(?i:authorization:\s*basic)\s+[A-Za-z0-9+/]{6,}={0,2}`,
		// PEM (RFC 7468), OpenPGP's armor (RFC 9580) and SSH's own (RFC 4716).
		`-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}[\s\S]*?(?:-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}|$)`,
	}, "|"))
})

// secretMarks are lower-case texts; each match of secretText contains one of them.
// Searching for them first makes redaction cheap: the expression alone takes 0.4 s for a
// megabyte.
var secretMarks = []string{
	"nize_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
	"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-",
	"xox", "xapp-", "hooks.slack.com/", "/api/webhooks/", ":aa", "sk-", "gsk_", "xai-", "hf_", "pplx-", "akia", "asia",
	"aiza", "gocspx-", "ya29.", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "npm_", "pypi-", "dckr_pat_", "sg.",
	"shpat_", "shpca_", "shppa_", "shpss_", "_v1_", "atatt3", "hvs.", "ntn_", "lin_api_", "figd_", "sntrys_", "age-secret-key-1",
	"eyj", "accountkey=", "bearer", "authorization:", "private key",
}

// secretURL matches the name and the password in a URL, up to its last @: a chat makes a
// link of what follows the first.
var secretURL = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#:@<>|"]*):([^\s/?#"]+)@`)

// secretPair matches NAME=VALUE if the name may be a secret's.
var secretPair = regexp.MustCompile(`([A-Za-z0-9_.-]*(?i:secret|token|passw|api_?key|access_?key)[A-Za-z0-9_.-]*)(["']?\s*=\s*["']?)([A-Za-z0-9+/_~-]{16,}={0,2})`)

func marked(s string) bool {
	return containsAny(strings.ToLower(s), secretMarks)
}

// maxRedactions is how many passes replace keys until none is left.
const maxRedactions = 8

// Redact replaces text that looks like a key by dots, until nothing in the result does: a
// key may directly follow another one and begin a word only once that one is masked. A text
// with more nested keys than any legitimate one is masked completely.
func Redact(s string) string {
	for range maxRedactions {
		hidden := redactOnce(s)
		if hidden == s {
			return s
		}
		s = hidden
	}
	if Looks(s) {
		return dots
	}
	return s
}

func redactOnce(s string) string {
	s = hide(s, discordTokens(s))
	if marked(s) {
		s = secretText().ReplaceAllString(s, dots)
	}
	if strings.Contains(s, "://") && strings.Contains(s, "@") {
		s = replaceParts(s, secretURL, func(m []string) string {
			if placeholder(m[3]) {
				return m[0]
			}
			return m[1] + dots + "@"
		})
	}
	if strings.Contains(s, "=") {
		s = replaceParts(s, secretPair, func(m []string) string {
			if !mixed(m[3]) || !secretPairName(m[1]) {
				return m[0]
			}
			return m[1] + m[2] + dots
		})
	}
	return hide(s, passwordsIn(s))
}

// Looks reports whether s contains text that looks like a key.
func Looks(s string) bool { return redactOnce(s) != s }

// Adds reports whether s contains text that looks like a key and known does not.
func Adds(s, known string) bool {
	if !Looks(s) {
		return false
	}
	keys := secretText().FindAllString(s, -1)
	for _, m := range secretURL.FindAllStringSubmatch(s, -1) {
		if !placeholder(m[3]) {
			keys = append(keys, m[3])
		}
	}
	for _, m := range secretPair.FindAllStringSubmatch(s, -1) {
		if mixed(m[3]) && secretPairName(m[1]) {
			keys = append(keys, m[3])
		}
	}
	for _, p := range append(discordTokens(s), passwordsIn(s)...) {
		keys = append(keys, s[p.from:p.to])
	}
	return slices.ContainsFunc(keys, func(key string) bool { return !strings.Contains(known, key) })
}

func replaceParts(s string, re *regexp.Regexp, by func(parts []string) string) string {
	return re.ReplaceAllStringFunc(s, func(match string) string { return by(re.FindStringSubmatch(match)) })
}

// placeholder reports whether a password is a placeholder.
func placeholder(s string) bool {
	return strings.Trim(s, "*•.xX") == "" || strings.ContainsAny(s[:1], "${%[") ||
		strings.HasPrefix(s, "<") && !strings.HasPrefix(s, "<mailto:") && !strings.HasPrefix(s, "<http")
}

// mixed reports whether s has letters and digits, as keys have and words don't.
func mixed(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ContainsFunc(s, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
}

// secretPairName reports whether name=value with that name is a secret. It is not if the
// name says that the value is a location or a name.
func secretPairName(name string) bool {
	upper := strings.ToUpper(strings.ReplaceAll(camel.ReplaceAllString(name, "${1}_$2"), "-", "_"))
	for _, tail := range []string{"_FILE", "_PATH", "_DIR", "_URL", "_URI", "_NAME", "_ID", "_ARN"} {
		if strings.HasSuffix(upper, tail) {
			return false
		}
	}
	return Name(name) || strings.HasSuffix(upper, "_KEY") || strings.HasSuffix(upper, "APIKEY")
}

// Passwords are seldom long and have no recognizable form: only the name before them
// (DB_PASS=…, password: …) reveals them. Prose, code and logs contain such names too, so
// the looser the notation, the more a value has to look like a password: see [isPassword].

// span is a part of a text.
type span struct{ from, to int }

// secretPassword matches a name that may be a password's, and the value after it.
var secretPassword = regexp.MustCompile(`([A-Za-z0-9_.-]*(?i:password|passwd|passphrase|pwd|pass))["']?(\s*[=:]\s*)(["']?)([^\s"'` + "`" + `&<>|]{4,})`)

// passwordWords are values after such a name that are not passwords.
var passwordWords = []string{
	"true", "false", "none", "null", "nil", "undefined", "required", "optional", "string", "text", "hidden", "password", "passwd",
	"prompt", "unset", "empty", "changed", "invalid", "incorrect", "wrong", "expired", "redacted", "removed", "your-password", "yourpassword",
}

// passwordsIn returns the passwords that are preceded by their name.
func passwordsIn(s string) []span {
	if !strings.ContainsAny(s, "=:") {
		return nil
	}
	if lower := strings.ToLower(s); !strings.Contains(lower, "pass") && !strings.Contains(lower, "pwd") {
		return nil
	}
	var out []span
	for _, m := range secretPassword.FindAllStringSubmatchIndex(s, -1) {
		if isPassword(s[m[2]:m[3]], s[m[4]:m[5]], m[7] > m[6], s[m[8]:m[9]]) {
			out = append(out, span{m[8], m[9]})
		}
	}
	return out
}

// isPassword judges name, separator and value. NAME=VALUE without blanks is the notation of
// shells and files: any value counts except variables, calls, paths and words for "none".
// After a colon, or an equals sign with blanks, there may also be prose and code: there the
// value must have digits or symbols among its letters.
func isPassword(name, between string, quoted bool, value string) bool {
	name = strings.ToLower(camel.ReplaceAllString(name, "${1}_$2"))
	last := name[strings.LastIndexAny(name, "_.-")+1:]
	short := last == "pass" || last == "pwd"
	if !short && !strings.HasSuffix(last, "password") && last != "passwd" && last != "passphrase" {
		return false // "compass"
	}
	value = strings.TrimRight(value, ".,;:!?)]}")
	if len(value) < 4 || strings.ContainsAny(value[:1], "=/~.${%[(\\") || strings.ContainsAny(value, "([") || placeholder(value) ||
		slices.Contains(passwordWords, strings.ToLower(value)) {
		return false
	}
	if short && !strings.ContainsFunc(value, letter) {
		return false // passed tests
	}
	if strings.Contains(between, ":") {
		return name != "pass" && odd(value)
	}
	return quoted || strings.TrimSpace(between) == between || odd(value)
}

func letter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' || r >= 0x80 }

// aCount matches a description of a password's length in prose: 12-character, 8characters.
var aCount = regexp.MustCompile(`(?i)^\d+[-+]?(?:char|letter|digit|symbol|byte|bit|day|word|month|week|hour|min)`)

// odd reports whether a word has digits, or symbols in its middle, among its letters.
func odd(s string) bool {
	return strings.ContainsFunc(s, letter) && !aCount.MatchString(s) &&
		(strings.ContainsAny(s, "0123456789") || strings.ContainsAny(s[:len(s)-1], "!@#$%^*+"))
}

// discordTokens returns the tokens of Discord bots: the bot's number in base64, its
// creation time, and a signature, separated by dots.
func discordTokens(s string) []span {
	var out []span
	for at := 0; at < len(s); {
		i := strings.IndexByte(s[at:], '.')
		if i < 0 {
			break
		}
		i += at
		at = i + 1
		from := i
		for from > 0 && i-from < 28 && tokenByte(s[from-1]) {
			from--
		}
		to := i + 1
		for to < len(s) && tokenByte(s[to]) {
			to++
		}
		if to-i-1 != 6 || to == len(s) || s[to] != '.' || !snowflake(s[from:i]) {
			continue
		}
		end := to + 1
		for end < len(s) && tokenByte(s[end]) {
			end++
		}
		if end-to-1 >= 27 {
			out, at = append(out, span{from, end}), end
		}
	}
	return out
}

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// snowflake reports whether a text is a number of 17 to 20 digits in base64.
func snowflake(s string) bool {
	b, err := base64.RawURLEncoding.DecodeString(s)
	return err == nil && len(b) >= 17 && len(b) <= 20 && strings.Trim(string(b), "0123456789") == ""
}

// hide replaces parts of a text, which are in order, by dots.
func hide(s string, parts []span) string {
	if len(parts) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, p := range parts {
		b.WriteString(s[at:p.from] + dots)
		at = p.to
	}
	return b.String() + s[at:]
}

// secretKey matches names of fields whose value must not be in the audit trail.
var secretKey = regexp.MustCompile(`(?i)(^|[_.-])(password|passwd|pwd|secret|token|api_?key|authorization|credential|private_?key|cookie)s?($|[_.-])`)

// secretNames are lower-case texts; each match of secretKey and of secretPassword contains
// one of them.
var secretNames = []string{"pass", "pwd", "secret", "token", "key", "authorization", "credential", "cookie"}

// Name reports whether the name of a field indicates a secret.
func Name(name string) bool {
	return secretKey.MatchString(camel.ReplaceAllString(name, "${1}_$2"))
}

// Value reports whether name=value contains a key, by its form or its name. Numbers,
// switches and paths under such a name are not keys (MAX_TOKENS=4096,
// TOKEN_FILE=/run/token); a URL with a password is one.
func Value(name, value string) bool {
	if Looks(value) {
		return true
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			return true
		}
	}
	upper := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if !Name(name) && upper != "KEY" && !strings.HasSuffix(upper, "_KEY") && !strings.HasSuffix(upper, "APIKEY") {
		return false
	}
	for _, tail := range []string{"_FILE", "_PATH", "_DIR", "_URL", "_URI"} {
		if strings.HasSuffix(upper, tail) {
			return false
		}
	}
	switch strings.ToLower(value) {
	case "", "true", "false", "yes", "no", "on", "off", "none":
		return false
	}
	return strings.Trim(value, "0123456789") != ""
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)
