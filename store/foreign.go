package store

import (
	"regexp"
	"runtime"
	"strings"
)

var windowsPath = regexp.MustCompile(`^(?:[A-Za-z]:[\\/]|\\\\[^\\]+\\|%[A-Za-z0-9_()]+%[\\/])`)

// ForeignPath returns the name of the operating system that a path belongs to, if that
// can't be this one; otherwise "". Clients' configuration files are copied between
// machines.
func ForeignPath(path string) string {
	switch {
	case windowsPath.MatchString(path):
		return "Windows"
	case runtime.GOOS != "darwin" && (strings.HasPrefix(path, "/Users/") || strings.HasPrefix(path, "/Applications/") || strings.HasPrefix(path, "/opt/homebrew/")):
		return "macOS"
	}
	return ""
}
