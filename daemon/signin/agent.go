package signin

import (
	"net/http"
	"strings"

	"nize/store"
	"nize/store/printable"
)

// browsers maps a mark in the User-Agent to a browser's name. Browsers whose User-Agent
// also contains the marks of others come first.
var browsers = []struct{ mark, name string }{
	{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
}

var systems = []struct{ mark, name string }{
	{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"},
}

// agent returns a short name of the browser, for display.
func agent(r *http.Request) string {
	text := r.UserAgent()
	var parts []string
	for _, b := range browsers {
		if strings.Contains(text, b.mark) {
			parts = append(parts, b.name)
			break
		}
	}
	for _, s := range systems {
		if strings.Contains(text, s.mark) {
			parts = append(parts, s.name)
			break
		}
	}
	if len(parts) == 0 {
		return store.Clip(printable.Escape(text), 60)
	}
	return strings.Join(parts, ", ")
}
