package bots

import "testing"

// TestNearCommand: a misspelling is a command, a greeting is not.
func TestNearCommand(t *testing.T) {
	names := []string{"ask", "help", "stop", "mute", "unmute", "approve", "deny", "claim", "tools", "servers", "agent", "model", "usage",
		"approvals", "settings", "channel", "connect", "tokens", "link", "privacy", "forget", "login"}
	for word, want := range map[string]string{
		"usgae": "usage", "hlep": "help", "helpp": "help", "halp": "help", "stpo": "stop", "setings": "settings", "settigns": "settings", "tool": "tools", "mdoel": "model", "aprovals": "approvals",
		"USAEG": "usage", "privcy": "privacy", "tokns": "tokens", "modle": "model",
		"你好": "", "谢谢": "", "hey": "", "hi": "", "hola": "", "tell": "", "hello": "", "hallo": "", "who": "", "what": "", "danke": "", "dank": "", "test": "", "yes": "", "the": "",
		"привет": "", "how": "", "can": "", "thanks": "", "ok": "", "done": "", "please": "", "time": "", "like": "", "show": "", "really": "", "please ": "", "morning": "", "christmas": "",
	} {
		if got := nearCommand(word, names); got != want {
			t.Errorf("nearCommand(%q) = %q, want %q", word, got, want)
		}
	}
}
