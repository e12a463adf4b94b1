package chat

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// Options are the options of `nizectl chat`.
type Options struct {
	Client   *api.Client
	In       io.Reader
	Out, Err io.Writer
	TTY      bool // In and Out are a terminal, then both are *os.File

	Agent   string
	Model   string
	Servers []string // allowed servers; empty is all
	Resume  string   // id of a conversation to continue
	Message string   // of -m
	Approve string   // ask, all or none; "" is ask on a terminal, none elsewhere
	Plain   bool
	JSON    bool
	// Ephemeral reports that the daemon ends with the chat, so that nothing continues
	// there.
	Ephemeral bool
	Zone      string // IANA name; "" is this machine's
	Locale    string // BCP 47; "" is the environment's

	History string                   // file of the history; "" is the default one
	Getenv  func(name string) string // nil is os.Getenv
	Now     func() time.Time         // nil is time.Now
}

// check sets Approve and returns an error for invalid combinations.
func (o *Options) check() error {
	switch o.Approve {
	case "":
		o.Approve = "none"
		if o.TTY && o.Message == "" {
			o.Approve = "ask"
		}
	case "ask":
		if !o.TTY {
			return fmt.Errorf("%w: --approve ask needs a terminal; use --approve all or --approve none", store.ErrInvalid)
		}
	case "all", "none":
	default:
		return fmt.Errorf("%w: --approve %q: use ask, all or none", store.ErrInvalid, o.Approve)
	}
	if o.JSON && o.Message == "" {
		return fmt.Errorf("%w: --json needs a message: use -m TEXT", store.ErrInvalid)
	}
	if o.Resume != "" {
		switch {
		case o.Agent != "" || o.Model != "" || len(o.Servers) > 0:
			return fmt.Errorf("%w: --resume goes on as the conversation was; leave --agent, --model and --server out", store.ErrInvalid)
		case !store.ValidID(o.Resume):
			return fmt.Errorf("%w: --resume %q is not the id of a conversation; `/history` in a chat lists them", store.ErrInvalid, o.Resume)
		}
	}
	return nil
}

// style returns the terminal's capabilities.
func (o *Options) style() style {
	if !o.TTY || o.Plain || o.Getenv("TERM") == "dumb" {
		return style{ascii: true}
	}
	return style{escapes: true, colour: o.Getenv("NO_COLOR") == "", ascii: !utf8Locale(o.Getenv)}
}

func langOf(getenv func(string) string) string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// utf8Locale reports whether the terminal shows more than ASCII; if no locale is set, it
// most likely does.
func utf8Locale(getenv func(string) string) bool {
	lang := strings.ToLower(langOf(getenv))
	return lang == "" || strings.Contains(lang, "utf-8") || strings.Contains(lang, "utf8")
}

// localeOf returns the environment's language as BCP 47: de_DE.UTF-8 is de-DE.
func localeOf(getenv func(string) string) string {
	lang := getenv("LC_ALL")
	for _, name := range []string{"LC_MESSAGES", "LANG"} {
		if lang == "" {
			lang = getenv(name)
		}
	}
	lang, _, _ = strings.Cut(lang, ".")
	lang, _, _ = strings.Cut(lang, "@")
	if lang == "C" || lang == "POSIX" {
		return ""
	}
	return strings.ReplaceAll(lang, "_", "-")
}

// LocalZone returns the IANA name of this machine's zone, "" if it has none.
func LocalZone(getenv func(string) string) string {
	name := strings.TrimPrefix(getenv("TZ"), ":")
	if name == "" {
		target, err := os.Readlink("/etc/localtime")
		if err != nil {
			return ""
		}
		name = target
	}
	if _, after, found := strings.Cut(name, "zoneinfo/"); found {
		name = after
	}
	if _, err := time.LoadLocation(name); err != nil {
		return ""
	}
	return name
}
