// Package secrettext tells what in a text looks like a secret, and hides it. It
// knows no record, so that whatever shows or keeps a text may ask it.
package secrettext

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// dots stand where something was hidden.
const dots = "••••"

// What looks like a key wherever it stands is one of three kinds: a
// key that tells by its beginning what it is, an address with a password, and a
// value under the name of a secret.

// secretText matches the first kind, by what their makers document. Compiling it
// takes half a millisecond, for which no command waits that does not need it.
var secretText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`nize_[A-Za-z0-9_-]{16,}`,
		`gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}`,
		`gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas)-[A-Za-z0-9_-]{20,}`, // GitLab
		`xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}`,
		`hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]+`,
		`discord(?:app)?\.com/api/webhooks/\d+/[A-Za-z0-9_-]+`,
		`\d{8,10}:AA[A-Za-z0-9_-]{33}`,                                    // Telegram's bots
		`sk-[A-Za-z0-9_-]{16,}|\b(?:gsk_|xai-|hf_|pplx-)[A-Za-z0-9]{20,}`, // makers of models
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
		// PEM (RFC 7468), OpenPGP's armour (RFC 9580) and SSH's own (RFC 4716).
		`-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}[\s\S]*?(?:-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}|$)`,
	}, "|"))
})

// secretMarks are lower-case texts of which each match of secretText holds one.
// Looking for them first is what makes redaction cheap: the expression alone
// takes 0.4 s for a megabyte.
var secretMarks = []string{
	"nize_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
	"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-",
	"xox", "xapp-", "hooks.slack.com/", "/api/webhooks/", ":aa", "sk-", "gsk_", "xai-", "hf_", "pplx-", "akia", "asia",
	"aiza", "gocspx-", "ya29.", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "npm_", "pypi-", "dckr_pat_", "sg.",
	"shpat_", "shpca_", "shppa_", "shpss_", "_v1_", "atatt3", "hvs.", "ntn_", "lin_api_", "figd_", "sntrys_", "age-secret-key-1",
	"eyj", "accountkey=", "bearer", "authorization:", "private key",
}

// secretURL matches the name and the password in an address, up to its last @:
// a chat makes a link of what follows the first.
var secretURL = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#:@<>|"]*):([^\s/?#"]+)@`)

// secretPair matches NAME=VALUE where the name may be a secret's.
var secretPair = regexp.MustCompile(`([A-Za-z0-9_.-]*(?i:secret|token|passw|api_?key|access_?key)[A-Za-z0-9_.-]*)(["']?\s*=\s*["']?)([A-Za-z0-9+/_~-]{16,}={0,2})`)

func marked(s string) bool {
	return containsAny(strings.ToLower(s), secretMarks)
}

// maxRedactions is how often dots are put in the place of keys until none is left.
const maxRedactions = 8

// Redact replaces what looks like a key by dots. What is left looks like none:
// a key may stand right behind another one, and begin a word only once that is
// hidden. A text in which they are stacked deeper than anybody needs is hidden whole.
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

// Looks says whether s is, or holds, what looks like a key.
func Looks(s string) bool { return redactOnce(s) != s }

// Adds says whether s holds what looks like a key and known does not.
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

// placeholder says whether a password is where one is to be put in.
func placeholder(s string) bool {
	return strings.Trim(s, "*•.xX") == "" || strings.ContainsAny(s[:1], "${%[") ||
		strings.HasPrefix(s, "<") && !strings.HasPrefix(s, "<mailto:") && !strings.HasPrefix(s, "<http")
}

// mixed says whether s has letters and digits, as keys have and words don't.
func mixed(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ContainsFunc(s, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
}

// secretPairName says whether name=value under that name is a secret: not where
// the name is that of its place or of its own name.
func secretPairName(name string) bool {
	upper := strings.ToUpper(strings.ReplaceAll(camel.ReplaceAllString(name, "${1}_$2"), "-", "_"))
	for _, tail := range []string{"_FILE", "_PATH", "_DIR", "_URL", "_URI", "_NAME", "_ID", "_ARN"} {
		if strings.HasSuffix(upper, tail) {
			return false
		}
	}
	return Name(name) || strings.HasSuffix(upper, "_KEY") || strings.HasSuffix(upper, "APIKEY")
}

// Passwords are seldom long and tell nothing by their form: what gives them away
// is the name before them (DB_PASS=…, password: …). Prose, code and logs write
// such names too, so the looser the writing, the more a value has to look like a
// password: see [isPassword].

// span is a part of a text.
type span struct{ from, to int }

// secretPassword matches a name that may be a password's, with what follows it.
var secretPassword = regexp.MustCompile(`([A-Za-z0-9_.-]*(?i:password|passwd|passphrase|pwd|pass))["']?(\s*[=:]\s*)(["']?)([^\s"'` + "`" + `&<>|]{4,})`)

// passwordWords are what stands behind such a name and is none.
var passwordWords = []string{
	"true", "false", "none", "null", "nil", "undefined", "required", "optional", "string", "text", "hidden", "password", "passwd",
	"prompt", "unset", "empty", "changed", "invalid", "incorrect", "wrong", "expired", "redacted", "removed", "your-password", "yourpassword",
}

// passwordsIn finds the passwords that have their name before them.
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

// isPassword judges name, separator and value. NAME=VALUE without blanks is how
// shells and files give one: any value is taken but for variables, calls, paths
// and the words that say there is none. Behind a colon, or an equals sign with
// blanks, stand prose and code too: there it has digits or signs among its letters.
func isPassword(name, between string, quoted bool, value string) bool {
	name = strings.ToLower(camel.ReplaceAllString(name, "${1}_$2"))
	last := name[strings.LastIndexAny(name, "_.-")+1:]
	short := last == "pass" || last == "pwd"
	if !short && !strings.HasSuffix(last, "password") && last != "passwd" && last != "passphrase" {
		return false // a compass
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

// aCount is how prose measures a password: 12-character, 8characters.
var aCount = regexp.MustCompile(`(?i)^\d+[-+]?(?:char|letter|digit|symbol|byte|bit|day|word|month|week|hour|min)`)

// odd says whether a word has digits, or signs in its middle, among its letters.
func odd(s string) bool {
	return strings.ContainsFunc(s, letter) && !aCount.MatchString(s) &&
		(strings.ContainsAny(s, "0123456789") || strings.ContainsAny(s[:len(s)-1], "!@#$%^*+"))
}

// discordTokens finds the tokens of Discord's bots: the number of the bot in
// base64, when it was made, and a signature, with dots between them.
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

// snowflake says whether a text is a number of 17 to 20 digits in base64.
func snowflake(s string) bool {
	b, err := base64.RawURLEncoding.DecodeString(s)
	return err == nil && len(b) >= 17 && len(b) <= 20 && strings.Trim(string(b), "0123456789") == ""
}

// hide replaces parts of a text, which are in its order, by dots.
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

// secretKey matches names of fields whose value is not for the audit.
var secretKey = regexp.MustCompile(`(?i)(^|[_.-])(password|passwd|pwd|secret|token|api_?key|authorization|credential|private_?key|cookie)s?($|[_.-])`)

// secretNames are lower-case texts of which each match of secretKey and of
// secretPassword holds one.
var secretNames = []string{"pass", "pwd", "secret", "token", "key", "authorization", "credential", "cookie"}

// Name says whether a field of that name holds a secret by its name.
func Name(name string) bool {
	return secretKey.MatchString(camel.ReplaceAllString(name, "${1}_$2"))
}

// Value says whether name=value holds a key, by its form or by its name.
// Numbers, switches and paths under such a name are none (MAX_TOKENS=4096,
// TOKEN_FILE=/run/token); an address with a password is one.
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
