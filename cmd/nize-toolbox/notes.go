package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of the notebook.
const (
	maxNotes   = 10_000
	maxFile    = 64 << 20
	maxSnippet = 160
)

// notebook is DIR/notes.json. Every change reads the file, changes it and
// replaces it by a rename, under a lock that other processes honour: each
// client starts a toolbox of its own, and they share the notes.
type notebook struct {
	dir string
	mu  sync.Mutex // flock is per process only where it is held once
}

type note struct {
	ID      int       `json:"id"`
	Title   string    `json:"title"`
	Text    string    `json:"text"`
	Tags    []string  `json:"tags"`
	Created time.Time `json:"created"`
}

// noteFile is the stored shape. Next never goes back, so that an id is not
// used again for another note.
type noteFile struct {
	Next  int    `json:"next"`
	Notes []note `json:"notes"`
}

func (n *notebook) path() string { return filepath.Join(n.dir, "notes.json") }

// read returns the notes as they are; none if there is no file yet.
func (n *notebook) read() (noteFile, error) {
	f := noteFile{Next: 1}
	info, err := os.Stat(n.path())
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil && info.Size() > maxFile {
		err = fmt.Errorf("%s has %d bytes, over the limit of %d", n.path(), info.Size(), maxFile)
	}
	if err != nil {
		return f, fmt.Errorf("opening the notebook: %w", err)
	}
	raw, err := os.ReadFile(n.path())
	if err != nil {
		return f, fmt.Errorf("opening the notebook: %w", err)
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fmt.Errorf("opening the notebook: %s is damaged (%w); move it away to start anew", n.path(), err)
	}
	return f, nil
}

// change runs f on the notes and writes what it made of them, unless f fails.
func (n *notebook) change(f func(*noteFile) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return fmt.Errorf("making the notebook's folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(n.dir, "notes.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("locking the notebook: %w", err)
	}
	defer lock.Close() // releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking the notebook: %w", err)
	}
	file, err := n.read()
	if err != nil {
		return err
	}
	if err := f(&file); err != nil {
		return err
	}
	return n.write(file)
}

func (n *notebook) write(file noteFile) error {
	raw, err := json.MarshalIndent(file, "", "\t")
	if err != nil {
		return fmt.Errorf("writing the notebook: %w", err)
	}
	if len(raw) > maxFile {
		return fmt.Errorf("writing the notebook: it would have %d bytes, over the limit of %d; delete some notes", len(raw), maxFile)
	}
	tmp, err := os.CreateTemp(n.dir, "notes-*.tmp") // 0600
	if err != nil {
		return fmt.Errorf("writing the notebook: %w", err)
	}
	defer os.Remove(tmp.Name()) // fails after the rename, as it should
	_, err = tmp.Write(raw)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("writing the notebook: %w", err)
	}
	if err := os.Rename(tmp.Name(), n.path()); err != nil {
		return fmt.Errorf("writing the notebook: %w", err)
	}
	folder, err := os.Open(n.dir)
	if err != nil {
		return fmt.Errorf("writing the notebook: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("writing the notebook: %w", err)
	}
	return nil
}

type addArgs struct {
	Title string   `json:"title"`
	Text  string   `json:"text"`
	Tags  []string `json:"tags"`
}

func (b *toolbox) noteAdd(in addArgs) (note, string, error) {
	added := note{Title: strings.TrimSpace(in.Title), Text: in.Text, Tags: in.Tags, Created: b.clock().UTC().Truncate(time.Second)}
	if added.Title == "" {
		first, _, _ := strings.Cut(strings.TrimSpace(in.Text), "\n")
		added.Title = shorten(first)
	}
	if added.Tags == nil {
		added.Tags = []string{}
	}
	err := b.notes.change(func(f *noteFile) error {
		if len(f.Notes) >= maxNotes {
			return fmt.Errorf("the notebook is full: %d notes; delete some with note_delete", maxNotes)
		}
		added.ID = f.Next
		f.Next++
		f.Notes = append(f.Notes, added)
		return nil
	})
	if err != nil {
		return note{}, "", err
	}
	return added, fmt.Sprintf("Added note %d: %s", added.ID, added.Title), nil
}

type listArgs struct {
	Tag   string  `json:"tag"`
	Query string  `json:"query"`
	Limit integer `json:"limit"`
}

// noteHead is a note without its whole text.
type noteHead struct {
	ID      int       `json:"id"`
	Title   string    `json:"title"`
	Tags    []string  `json:"tags"`
	Created time.Time `json:"created"`
	Snippet string    `json:"snippet,omitempty"`
}

type listOut struct {
	Notes []noteHead `json:"notes"`
	Total int        `json:"total"` // that match, also beyond the limit
}

// noteList gives the newest notes, noteSearch those that hold every word.
func (b *toolbox) noteList(in listArgs) (listOut, string, error) {
	return b.list(in, func(n note) bool { return in.Tag == "" || slices.Contains(n.Tags, in.Tag) })
}

func (b *toolbox) noteSearch(in listArgs) (listOut, string, error) {
	words := strings.Fields(strings.ToLower(in.Query))
	if len(words) == 0 {
		return listOut{}, "", errors.New("the query is empty: give words to look for, or use note_list")
	}
	return b.list(in, func(n note) bool {
		all := strings.ToLower(n.Title + "\n" + n.Text + "\n" + strings.Join(n.Tags, "\n"))
		for _, w := range words {
			if !strings.Contains(all, w) {
				return false
			}
		}
		return true
	})
}

func (b *toolbox) list(in listArgs, keep func(note) bool) (listOut, string, error) {
	f, err := b.notes.read()
	if err != nil {
		return listOut{}, "", err
	}
	if in.Limit == 0 {
		in.Limit = 20
	}
	out := listOut{Notes: []noteHead{}}
	var lines []string
	for _, n := range slices.Backward(f.Notes) {
		if !keep(n) {
			continue
		}
		if out.Total++; out.Total > int(in.Limit) {
			continue
		}
		head := noteHead{ID: n.ID, Title: n.Title, Tags: n.Tags, Created: n.Created, Snippet: snippet(n.Text, in.Query)}
		out.Notes = append(out.Notes, head)
		line := fmt.Sprintf("%d: %s (%s)", n.ID, n.Title, n.Created.Format(time.DateOnly))
		if len(n.Tags) > 0 {
			line += " #" + strings.Join(n.Tags, " #")
		}
		lines = append(lines, line)
	}
	switch {
	case out.Total == 0 && len(f.Notes) == 0:
		return out, "There are no notes yet.", nil
	case out.Total == 0:
		return out, fmt.Sprintf("None of the %s fits.", count(len(f.Notes), "note")), nil
	case out.Total > len(out.Notes):
		lines = append(lines, fmt.Sprintf("… and %d more", out.Total-len(out.Notes)))
	}
	return out, strings.Join(lines, "\n"), nil
}

// snippet is the text around the first word of the query, on one line.
func snippet(s, query string) string {
	s = strings.Join(strings.Fields(s), " ")
	start := 0
	if words := strings.Fields(strings.ToLower(query)); len(words) > 0 {
		if i := strings.Index(strings.ToLower(s), words[0]); i > maxSnippet/2 {
			start = min(i-maxSnippet/4, len(s)) // lower case may be longer
		}
	}
	cut := s[start:]
	if len(cut) > maxSnippet {
		cut = cut[:maxSnippet] + "…"
	}
	if start > 0 {
		cut = "…" + cut
	}
	return strings.ToValidUTF8(cut, "")
}

type idArgs struct {
	ID integer `json:"id"`
}

func (b *toolbox) noteRead(in idArgs) (note, string, error) {
	f, err := b.notes.read()
	if err != nil {
		return note{}, "", err
	}
	i := f.index(int(in.ID))
	if i < 0 {
		return note{}, "", f.unknown(int(in.ID))
	}
	n := f.Notes[i]
	return n, n.Title + "\n\n" + n.Text, nil
}

func (f *noteFile) index(id int) int {
	return slices.IndexFunc(f.Notes, func(n note) bool { return n.ID == id })
}

func (f *noteFile) unknown(id int) error {
	if len(f.Notes) == 0 {
		return fmt.Errorf("there is no note %d: there are no notes at all", id)
	}
	last := f.Notes[len(f.Notes)-1]
	return fmt.Errorf("there is no note %d: the newest is %d (%s); note_list shows all", id, last.ID, last.Title)
}

type deletedOut struct {
	Deleted int    `json:"deleted"`
	Title   string `json:"title"`
	Left    int    `json:"left"`
}

func (b *toolbox) noteDelete(in idArgs) (deletedOut, string, error) {
	out := deletedOut{Deleted: int(in.ID)}
	err := b.notes.change(func(f *noteFile) error {
		i := f.index(int(in.ID))
		if i < 0 {
			return f.unknown(int(in.ID))
		}
		out.Title = f.Notes[i].Title
		f.Notes = slices.Delete(f.Notes, i, i+1)
		out.Left = len(f.Notes)
		return nil
	})
	if err != nil {
		return deletedOut{}, "", err
	}
	return out, fmt.Sprintf("Deleted note %d: %s", in.ID, out.Title), nil
}
