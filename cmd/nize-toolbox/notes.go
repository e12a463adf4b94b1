package main

import (
	"cmp"
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

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// notebook is DIR/notes.json. Each change reads the file and replaces it by a rename, under
// a lock that other processes also use: each client starts its own toolbox, and they share
// the notes.
type notebook struct {
	dir string
	mu  sync.Mutex // flock alone does not exclude two calls in this process
}

type note struct {
	ID      int       `json:"id"`
	Title   string    `json:"title"`
	Text    string    `json:"text"`
	Tags    []string  `json:"tags"`
	Created time.Time `json:"created"`
}

// noteFile is the stored form. Next never decreases, so that ids are never reused.
type noteFile struct {
	Next  int    `json:"next"`
	Notes []note `json:"notes"`
}

func (n *notebook) path() string { return filepath.Join(n.dir, "notes.json") }

func (n *notebook) read() (noteFile, error) {
	f := noteFile{Next: 1}
	raw, err := os.ReadFile(n.path())
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fmt.Errorf("%s is damaged (%w); move it away to start again", n.path(), err)
	}
	return f, nil
}

// change runs f on the notes and stores the result, unless f returns an error.
func (n *notebook) change(f func(*noteFile) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(n.dir, "notes.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	file, err := n.read()
	if err == nil {
		err = f(&file)
	}
	if err != nil {
		return err
	}
	tmp, err := os.OpenFile(n.path()+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(json.NewEncoder(tmp).Encode(file), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), n.path())
}

type noteAddArgs struct {
	Text  string   `json:"text" jsonschema:"The note itself"`
	Title string   `json:"title,omitempty" jsonschema:"Title; the first line of the text if left out"`
	Tags  []string `json:"tags,omitempty" jsonschema:"Words to find it by"`
}

type noteListArgs struct {
	Query string `json:"query,omitempty" jsonschema:"Words to look for in title, text and tags; all must occur, in any order and case"`
	Limit int    `json:"limit,omitempty" jsonschema:"How many at most, 20 if left out"`
}

type noteIDArgs struct {
	ID int `json:"id" jsonschema:"The note's id, as note_add and note_list give it"`
}

type noteListOut struct {
	Notes []note `json:"notes"`
}

func (b *toolbox) addNotes(s *sdk.Server) {
	add(s, about(adds, "note_add", "Add a note", "Writes a note into the notebook on this computer and returns its id. For remembering something: a list, an idea, a decision."),
		limits{"text": length(1, 65536), "title": length(0, 200)}, b.noteAdd)
	add(s, about(reads, "note_list", "List or search notes", "Lists the notes of the notebook, the newest first, with ids and titles, or finds those that hold the given words."),
		limits{"query": length(0, 200), "limit": between(1, 200)}, b.noteList)
	add(s, about(reads, "note_read", "Read a note", "Returns the whole text of one note of the notebook."),
		nil, func(in noteIDArgs) (note, string, error) {
			file, err := b.notes.read()
			if err != nil {
				return note{}, "", err
			}
			n, err := file.note(in.ID)
			return n, n.Title + "\n\n" + n.Text, err
		})
	add(s, about(erases, "note_delete", "Delete a note", "Deletes one note of the notebook for good. There is no way to get it back."),
		nil, func(in noteIDArgs) (deleted note, text string, err error) {
			err = b.notes.change(func(f *noteFile) error {
				deleted, err = f.note(in.ID)
				f.Notes = slices.DeleteFunc(f.Notes, func(n note) bool { return n.ID == in.ID })
				return err
			})
			return deleted, fmt.Sprintf("Deleted note %d: %s", in.ID, deleted.Title), err
		})
}

func (b *toolbox) noteAdd(in noteAddArgs) (note, string, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(in.Text), "\n")
	added := note{Title: cmp.Or(strings.TrimSpace(in.Title), fmt.Sprintf("%.60s", first)), Text: in.Text, Tags: append([]string{}, in.Tags...), Created: b.now().UTC().Truncate(time.Second)}
	err := b.notes.change(func(f *noteFile) error {
		added.ID = f.Next
		f.Next++
		f.Notes = append(f.Notes, added)
		return nil
	})
	return added, fmt.Sprintf("Added note %d: %s", added.ID, added.Title), err
}

// noteList returns the newest notes first, their texts cut to one line.
func (b *toolbox) noteList(in noteListArgs) (noteListOut, string, error) {
	file, err := b.notes.read()
	out, text := noteListOut{Notes: []note{}}, ""
	for _, n := range slices.Backward(file.Notes) {
		all := strings.ToLower(fmt.Sprint(n.Title, "\n", n.Text, "\n", n.Tags))
		missing := func(word string) bool { return !strings.Contains(all, word) }
		if len(out.Notes) == cmp.Or(in.Limit, 20) || slices.ContainsFunc(strings.Fields(strings.ToLower(in.Query)), missing) {
			continue
		}
		n.Text = fmt.Sprintf("%.160s", strings.Join(strings.Fields(n.Text), " "))
		out.Notes = append(out.Notes, n)
		text += fmt.Sprintf("\n%d: %s (%s)", n.ID, n.Title, n.Created.Format(time.DateOnly))
	}
	return out, fmt.Sprintf("%d of all %d notes:%s", len(out.Notes), len(file.Notes), text), err
}

func (f *noteFile) note(id int) (note, error) {
	for _, n := range f.Notes {
		if n.ID == id {
			return n, nil
		}
	}
	return note{}, fmt.Errorf("there is no note %d; note_list shows all", id)
}
