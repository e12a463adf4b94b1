package servers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/store"
)

// TestReadValues: a header may be written as it is sent; one with a key leads to
// --header-secret, and no message repeats the key.
func TestReadValues(t *testing.T) {
	const key = "sk-0123456789abcdefghij"
	for name, test := range map[string]struct {
		flag          string
		plain, hidden []string
		want          map[string]store.Value
		err           string
	}{
		"equals":            {flag: "header", plain: []string{"X-Team=red"}, want: map[string]store.Value{"X-Team": {Text: "red"}}},
		"colon":             {flag: "header", plain: []string{"X-Team: red"}, want: map[string]store.Value{"X-Team": {Text: "red"}}},
		"colon, no space":   {flag: "header", plain: []string{"X-Team:red"}, want: map[string]store.Value{"X-Team": {Text: "red"}}},
		"equals first":      {flag: "header", plain: []string{"X-At=12:30"}, want: map[string]store.Value{"X-At": {Text: "12:30"}}},
		"colon first":       {flag: "header", plain: []string{"X-Where: a=b"}, want: map[string]store.Value{"X-Where": {Text: "a=b"}}},
		"empty":             {flag: "header", plain: []string{"X-Team:"}, want: map[string]store.Value{"X-Team": {}}},
		"reference":         {flag: "header", plain: []string{`Authorization: {"secret_key":"K"}`}, want: map[string]store.Value{"Authorization": {SecretKey: "K"}}},
		"variable":          {flag: "env", plain: []string{"A:B=c"}, err: "is no name of a variable"},
		"variable, colon":   {flag: "env", plain: []string{"PLACE: Rome"}, err: "want K=V"},
		"secret name":       {flag: "header", hidden: []string{"Authorization"}, want: map[string]store.Value{"Authorization": {SecretKey: "Authorization"}}},
		"a key":             {flag: "header", plain: []string{"Authorization: Bearer " + key}, err: "--header Authorization contains what looks like a key, and anyone on this machine can read a command line; use --header-secret Authorization,"},
		"a key with equals": {flag: "header", plain: []string{"X-Api-Key=" + key}, err: "use --header-secret X-Api-Key,"},
		"a key as name":     {flag: "header", plain: []string{key + ": x"}, err: "use --header-secret NAME,"},
		"a key alone":       {flag: "header", plain: []string{"Bearer " + key}, err: "--header what was given: want 'K: V' or K=V"},
		"a key, secret":     {flag: "header", hidden: []string{"Authorization: Bearer " + key}, err: "--header-secret takes only a name, never a value: --header-secret Authorization prompts"},
		"words, secret":     {flag: "header", hidden: []string{"Authorization Bearer " + key}, err: "--header-secret takes|is no name of a header"},
		"only a key":        {flag: "env", hidden: []string{key}, err: "is no name of a variable"},
		"a variable's key":  {flag: "env", plain: []string{"TOKEN=" + key}, err: "use --env-secret TOKEN,"},
		"twice":             {flag: "header", plain: []string{"A: 1", "A=2"}, err: "--header A is given twice"},
		"line break":        {flag: "header", plain: []string{"A: b\nC: d"}, err: "line break"},
		"no name":           {flag: "header", plain: []string{": red"}, err: "want 'K: V' or K=V"},
	} {
		got, err := readValues(test.flag, test.plain, test.hidden)
		switch {
		case test.err == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.err == "":
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		case err == nil:
			t.Errorf("%s: no error, but %v", name, got)
		default:
			found := false
			for one := range strings.SplitSeq(test.err, "|") {
				found = found || strings.Contains(err.Error(), one)
			}
			if !found || strings.Contains(err.Error(), key) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
