package chat

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"nize/daemon/api"
	"nize/store"
)

// maxHistory is how many messages are kept.
const maxHistory = 1000

// history holds earlier messages, newest last; one JSON string per line in a file that only
// its owner may read. Text that looks like a key is not kept.
type history struct {
	path  string
	lines []string
}

// historyPath returns the path of the history (XDG base directories: it is state).
func historyPath() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := api.Home()
		if err != nil {
			return "" // kept for this chat only
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "nize", "chat_history")
}

// openHistory reads the file; a missing one is empty.
func openHistory(path string) (*history, error) {
	h := &history{path: path}
	if path == "" {
		return h, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("opening the chat history: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 8*maxPaste)
	for lines.Scan() {
		var text string
		if json.Unmarshal(lines.Bytes(), &text) == nil { // skip an incomplete line
			h.lines = append(h.lines, text)
		}
	}
	if err := lines.Err(); err != nil {
		return h, fmt.Errorf("reading the chat history: %w", err)
	}
	if len(h.lines) > maxHistory {
		h.lines = h.lines[len(h.lines)-maxHistory:]
		return h, h.rewrite()
	}
	return h, nil
}

func (h *history) len() int { return len(h.lines) }

// at returns the entry that is back steps before the newest.
func (h *history) at(back int) string { return h.lines[len(h.lines)-1-back] }

// add adds a message.
func (h *history) add(text string) error {
	if strings.TrimSpace(text) == "" || store.LooksSecret(text) || (h.len() > 0 && h.at(0) == text) {
		return nil
	}
	h.lines = append(h.lines, text)
	if h.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return fmt.Errorf("keeping the chat history: %w", err)
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keeping the chat history: %w", err)
	}
	line, err := json.Marshal(text)
	if err == nil {
		_, err = f.Write(append(line, '\n')) // one write, so that concurrent chats don't mix their lines
	}
	return errors.Join(err, f.Close())
}

// rewrite shortens the file.
func (h *history) rewrite() error {
	var b strings.Builder
	for _, text := range h.lines {
		line, err := json.Marshal(text)
		if err != nil {
			return fmt.Errorf("shortening the chat history: %w", err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	tmp := h.path + ".new"
	if err := os.WriteFile(tmp, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("shortening the chat history: %w", err)
	}
	return os.Rename(tmp, h.path)
}
