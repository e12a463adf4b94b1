package secrettext

import (
	"strings"
	"testing"
)

// made is a key that no scanner of sources takes for one: its head stands apart.
func made(head, rest string) string { return head + rest }

// TestSecretForms: keys as their makers give them are masked, wherever a person
// pastes them.
func TestSecretForms(t *testing.T) {
	const a32 = "0123456789abcdefABCDEF0123456789"
	for _, key := range []string{
		made("AKIA", "IOSFODNN7EXAMPLE"), made("ASIA", "IOSFODNN7EXAMPLE"),
		made("AIza", "SyA-0123456789_abcdefghijklmnopqrst"), made("GOCSPX-", "0123456789abcdefghijklmnop"), made("ya29.", "a0AfH6SMB-0123456789abcdef"),
		made("sk_live_", "4eC39HqLyjWDarjtT1zdp7dc"), made("rk_live_", "4eC39HqLyjWDarjtT1zdp7dc"), made("sk_test_", "4eC39HqLyjWDarjtT1zdp7dc"), made("whsec_", a32),
		made("sk-proj-", a32), made("sk-ant-api03-", a32), made("gsk_", a32), made("hf_", "abcdefghijklmnopqrstuvwxyz"), made("xai-", a32),
		made("glpat-", "abcdefghij0123456789"), made("gho_", a32), made("github_pat_", a32),
		made("xoxe.xoxp-", "1-0123456789abc"), made("xoxb-", "123456789012-abcdef"), "hooks.slack.com/services/T000/B000/" + a32,
		made("npm_", a32), made("pypi-", a32+a32), made("dckr_pat_", a32), made("SG.", "0123456789abcdefghij.0123456789abcdefghij"), made("shpat_", "0123456789abcdef0123456789abcdef"),
		made("dop_v1_", "0123456789abcdef0123456789abcdef"), made("ATATT3", a32), made("hvs.", a32), made("ntn_", a32), made("lin_api_", a32),
		made("AGE-SECRET-KEY-1", "QQQQQQQQQQQQQQQQQQQQQQQQQQ"), "1234567890:AA" + "0123456789abcdefABCDEF01234567890",
		made("eyJhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"), made("eyJhbGciOiJub25lIn0.", "eyJzdWIiOiIxMjM0In0."),
		"AccountKey=" + a32 + a32 + "==", "Authorization: Basic dXNlcjpodW50ZXIyMg==",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nxcLY\n-----END PGP PRIVATE KEY BLOCK-----",
		"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2/56\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
	} {
		if !secretText().MatchString(key) || !Looks("see `"+key+"`, please") || Redact(key) != dots {
			t.Errorf("%q is shown as %q", key, Redact(key))
		}
		if upper := strings.ToUpper(key[:4]) + key[4:]; Looks(key) && secretText().MatchString(upper) && !Looks(upper) {
			t.Errorf("the quick look misses %q", upper)
		}
	}
}

// TestPasswords: a password is masked that has its name before it, however short,
// and what only looks so stays.
func TestPasswords(t *testing.T) {
	for in, want := range map[string]string{
		"password=hunter2":                                  "password=••••",
		"DB_PASS=abcd":                                      "DB_PASS=••••",
		"PASSWD: hunter2":                                   "PASSWD: ••••",
		"password: P@ssword":                                "password: ••••",
		`{"password": "hunter2", "user": "bob"}`:            `{"password": "••••", "user": "bob"}`,
		"export PGPASSWORD=letmein; psql":                   "export PGPASSWORD=•••• psql",
		"mysql --password=swordfish -u root":                "mysql --password=•••• -u root",
		"userPassword = 'swordfish'":                        "userPassword = '••••'",
		"smtp.pwd=s3cr":                                     "smtp.pwd=••••",
		"https://x.example/?user=b&password=hunter2&n=1":    "https://x.example/?user=b&password=••••&n=1",
		"postgres://user:pw@host/db":                        "postgres://••••@host/db",
		"my password is: hunter2, PASSPHRASE=correct-horse": "my password is: hunter2, PASSPHRASE=••••",
		"Bot " + made("MTIzNDU2Nzg5MDEyMzQ1Njc4", ".GabcDE.0123456789abcdefghijklmnopqrstuvwxyzAB"): "Bot ••••",
	} {
		got := Redact(in)
		if got != want || !Looks(in) || Redact(got) != got {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if Adds(in, in) || !Adds(in, "") {
			t.Errorf("%q: what is known of it is not told apart", in)
		}
	}
	for _, s := range []string{
		"password: required", "Password: must be at least 8 characters", "password: 12-character minimum", "the password: I forgot it", "password:\n  type: string",
		"password=true", "password=required", "password=$DB_PASSWORD", "password=${PW}", "password={{ .Values.pw }}", "password=<your password>", "password=****", "password=%s",
		"password = input()", "password=getpass()", `password=os.environ["PW"]`, "if password == stored {", "pass := check()", "password = value", "PWD=/home/bob", "pwd: /srv/www", "OLDPWD=~/x",
		"--- PASS: TestSlack2 (0.10s)", "pass: 1200, fail: 3", "pass=1200", "compass=north2", "bypass: rule12", "passwordless=true12", "password_file=/run/secrets/a1", "passport: AB123456",
		"password: see the vault", "a password? reset it", "PASSWORD=", "password=\"\"", "1password.com: sign in", "nize.io.example.com and a.b.c", "v1.2.3-0.20240101000000-abcdef123456",
		"github.com/google/go-cmp.v0.7.0a.0123456789abcdefghijklmnopqrstuvw", "com.example.some.package.name.AbstractSingletonProxyFactoryBean",
	} {
		if got := Redact(s); got != s {
			t.Errorf("%q is hidden: %q", s, got)
		}
	}
}

// TestSecretParts: of an address and of NAME=VALUE the secret alone is masked.
func TestSecretParts(t *testing.T) {
	for in, want := range map[string]string{
		"postgres://app:hunter2@db.example.com:5432/app?sslmode=require": "postgres://••••@db.example.com:5432/app?sslmode=require",
		"see mongodb+srv://root:p%40ss:word@cluster0/x.":                 "see mongodb+srv://••••@cluster0/x.",
		"redis://:hunter2@cache:6379 and https://bob:s3cret@x.example/y": "redis://••••@cache:6379 and https://••••@x.example/y",
		// What Slack makes of it: it takes the password for an e-mail address.
		"postgres://app:<mailto:hunter2@db.example.com|hunter2@db.example.com>/app": "postgres://••••@db.example.com>/app",
		"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY":          "aws_secret_access_key = ••••",
		`export DB_PASSWORD="Sup3rS3cretPassw0rd"`:                                  `export DB_PASSWORD="••••"`,
		"https://x.example/cb?access_token=0123456789abcdefXYZ&n=1":                 "https://x.example/cb?access_token=••••&n=1",
	} {
		if got := Redact(in); got != want || !Looks(in) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	for _, s := range []string{
		"postgres://app@db/x", "https://example.com:8080/a@b", "postgres://user:$PASSWORD@db/x", "postgres://user:<password>@db/x", "postgres://user:****@db/x",
		"mail bob@example.com: see https://example.com", "token = tokenizer.next_token_of_the_stream()", "MAX_TOKENS=4096000000000000000", "TOKEN_FILE=/run/secrets/token-2024",
		"secret_name=prod-database-2024-credentials", "monkey=0123456789abcdefXYZ", "an eyJ alone", "task_id, asia, begin a private key ceremony", "basic understanding of glossaries",
	} {
		if Looks(s) || Redact(s) != s {
			t.Errorf("%q is hidden: %q", s, Redact(s))
		}
	}
}

// TestKeysBehindKeys: a key that stands right behind another one, where it begins
// no word, is hidden with it.
func TestKeysBehindKeys(t *testing.T) {
	amazon, hugging, shop := made("AKIA", "IOSFODNN7EXAMPLE"), made("hf_", "abcdefghijklmnopqrstuvwxyz"), made("shpat_", "0123456789abcdef0123456789abcdef")
	discord := made("MTIzNDU2Nzg5MDEyMzQ1Njc4", ".GabcDE.0123456789abcdefghijklmnopqrstuvwxyzAB")
	for in, want := range map[string]string{
		amazon + hugging:        dots + dots,
		amazon + shop + hugging: dots + dots + dots,
		amazon + discord:        dots + dots,
		"x" + hugging:           "x" + hugging, // no key: it is the middle of a word
		amazon + strings.Repeat(shop, maxRedactions): dots,
	} {
		got := Redact(in)
		if got != want || Looks(got) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestRedactMarks: the quick look before the expression misses none of its forms.
func TestRedactMarks(t *testing.T) {
	for _, s := range []string{
		"nize_0123456789abcdef", "ghp_0123456789abcdef", "gho_0123456789abcdef", "ghu_0123456789abcdef", "ghs_0123456789abcdef", "ghr_0123456789abcdef",
		"github_pat_0123456789abcdef", "xoxb-0123456789", "xoxe-0123456789", "xapp-0123456789", "sk-0123456789abcdef", "AKIA0123456789ABCDEF",
		"Bearer 0123456789ab", "BEARER\t0123456789ab", "-----BEGIN PRIVATE KEY-----", "-----BEGIN EC PRIVATE KEY-----",
	} {
		if !secretText().MatchString(s) || !Looks(s) || !Looks("see: "+s+".") || Redact(s) != dots {
			t.Errorf("%q is shown", s)
		}
	}
	for _, s := range []string{"", "sk-short", "a risk-free ask", "the bearer of news", "nize_"} {
		if Looks(s) || Redact(s) != s {
			t.Errorf("%q is hidden", s)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("nize_0123456789abcdefgh")
	f.Add("AKIA0123456789ABCDEFhf_A1b2C3d4E5f6G7h8I9j0")
	f.Fuzz(func(t *testing.T, s string) {
		if secretText().MatchString(s) && !Looks(s) {
			t.Fatalf("the quick look is wrong about %q", s)
		}
		if hidden := Redact(s); Looks(hidden) {
			t.Fatalf("%q becomes %q, which still looks like a key", s, hidden)
		}
	})
}
