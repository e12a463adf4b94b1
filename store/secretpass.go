package store

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

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
