package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/store"
	"nize/store/commit"
	"nize/store/record/access"
)

// Catalog stores servers with their tools, models, channels, and the vectors of an index.
type Catalog struct{ db *commit.DB }

// Over returns the catalog stored in db.
func Over(db *commit.DB) Catalog { return Catalog{db} }

// PutServer implements [store.Servers]. Revisions come from one counter for all servers, so
// a reused name never gets an earlier revision.
func (d Catalog) PutServer(ctx context.Context, by store.Caller, s store.Server, rev uint64) (store.Server, error) {
	err := d.db.Write(ctx, "storing server "+s.Name, func(t *commit.Tx) error {
		if err := store.CheckSlug(s.Name); err != nil {
			return err
		}
		if err := access.CheckGroups(t, s.Visibility); err != nil {
			return err
		}
		if err := access.CheckApprovers(t, s.Approvers); err != nil {
			return err
		}
		old, err := commit.GetJSON[store.Server](t, "servers", []byte(s.Name))
		switch {
		case errors.Is(err, store.ErrNotFound) && rev != 0:
			return fmt.Errorf("%w: it was removed", store.ErrConflict)
		case errors.Is(err, store.ErrNotFound):
			if s.Created.IsZero() {
				s.Created = t.Now
			}
		case err != nil:
			return err
		case rev == 0:
			return store.ErrExists
		case rev != old.Revision:
			return fmt.Errorf("%w: revision %d is now %d", store.ErrConflict, rev, old.Revision)
		default:
			s.Created = old.Created
		}
		return SaveServer(t, by, &s)
	})
	if err != nil {
		return store.Server{}, err
	}
	return s, nil
}

// SaveServer stores a server with its next revision.
func SaveServer(t *commit.Tx, by store.Caller, s *store.Server) (err error) {
	t.Writes++
	if s.Revision, err = t.Raw.Sequence("servers", 1); err != nil {
		return err
	}
	if err := t.PutJSON("servers", []byte(s.Name), s); err != nil {
		return err
	}
	t.Change(store.Change{Kind: "server", ID: s.Name})
	return t.Event(commit.Note{By: by, Kind: "server.put", Subject: s.Name, Data: s})
}

// DeleteServer implements [store.Servers]. It keeps cached vectors: they are keyed by the
// hash of their content, which servers may share, and the cache limit removes them.
func (d Catalog) DeleteServer(ctx context.Context, by store.Caller, name string) error {
	return d.db.Write(ctx, "removing server "+name, func(t *commit.Tx) error {
		if t.Get("servers", []byte(name)) == nil {
			return store.ErrNotFound
		}
		if err := t.Delete("servers", []byte(name)); err != nil {
			return err
		}
		for _, bucket := range []string{"tools", "lessons"} {
			if err := t.DeletePrefix(bucket, commit.Key(name, "")); err != nil {
				return err
			}
		}
		t.Change(store.Change{Kind: "server", ID: name})
		t.Change(store.Change{Kind: "tools", ID: name})
		if err := t.Event(commit.Note{By: by, Kind: "server.delete", Subject: name}); err != nil {
			return err
		}
		return unlistServer(t, by, name)
	})
}

// GetServer implements [store.Servers].
func (d Catalog) GetServer(ctx context.Context, name string) (s store.Server, err error) {
	err = d.db.Read(ctx, "reading server "+name, func(t *commit.Tx) (err error) {
		s, err = commit.GetJSON[store.Server](t, "servers", []byte(name))
		return err
	})
	return s, err
}

// ListServers implements [store.Servers].
func (d Catalog) ListServers(ctx context.Context) (list []store.Server, err error) {
	err = d.db.Read(ctx, "listing servers", func(t *commit.Tx) (err error) {
		list, err = commit.ListJSON[store.Server](t, "servers", nil)
		return err
	})
	return list, err
}

// encodeTool preserves the server's own bytes of the schemas.
func encodeTool(tool store.Tool) ([]byte, error) {
	head := tool
	head.InputSchema, head.OutputSchema, head.Meta = nil, nil, nil
	b, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	return commit.Pack(b, tool.InputSchema, tool.OutputSchema, tool.Meta), nil
}

func decodeTool(v []byte) (store.Tool, error) {
	p, err := commit.UnpackN(v, 4)
	if err != nil {
		return store.Tool{}, err
	}
	tool, err := commit.DecodeJSON[store.Tool](p[0])
	tool.InputSchema, tool.OutputSchema, tool.Meta = commit.CloneBytes(p[1]), commit.CloneBytes(p[2]), commit.CloneBytes(p[3])
	if tool.Accepted == tool.Pin { // true of most tools, and they are kept for a long time
		tool.Accepted = tool.Pin
	}
	return tool, err
}

// PutTools implements [store.Tools]. The server must be registered, unless its name is one
// of nize's own (native, agent).
func (d Catalog) PutTools(ctx context.Context, by store.Caller, server string, tools []store.Tool) (store.ToolDiff, error) {
	var diff store.ToolDiff
	err := d.db.Write(ctx, "storing the tools of "+server, func(t *commit.Tx) error {
		diff = store.ToolDiff{}
		if t.Get("servers", []byte(server)) == nil && server != "native" && server != "agent" {
			return fmt.Errorf("server %q %w", server, store.ErrNotFound)
		}
		before := t.Writes
		gone := map[string]store.Tool{}
		err := t.Each("tools", commit.Key(server, ""), func(_, v []byte) error {
			tool, err := decodeTool(v)
			gone[tool.Name] = tool
			return err
		})
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, tool := range tools {
			if err := commit.CheckIDs("tool name", tool.Name); err != nil {
				return err
			}
			if seen[tool.Name] {
				return fmt.Errorf("%w tools: %q is listed twice", store.ErrInvalid, tool.Name)
			}
			seen[tool.Name] = true
			tool.Server = server
			old, was := gone[tool.Name]
			delete(gone, tool.Name)
			if err := putTool(t, tool, old, was, &diff); err != nil {
				return err
			}
		}
		for name := range gone {
			diff.Removed = append(diff.Removed, server+":"+name)
			for _, bucket := range []string{"tools", "lessons"} {
				if err := t.Delete(bucket, commit.Key(server, name)); err != nil {
					return err
				}
			}
		}
		slices.Sort(diff.Removed)
		if t.Writes == before {
			return nil
		}
		t.Change(store.Change{Kind: "tools", ID: server})
		if len(diff.Added)+len(diff.Changed)+len(diff.Removed) == 0 {
			return nil // a state or a finding changed: the trail records only definitions
		}
		return t.Event(commit.Note{By: by, Kind: "tools.put", Subject: server, Data: diff})
	})
	if err != nil {
		return store.ToolDiff{}, err
	}
	return diff, nil
}

// putTool stores one tool of a list if it differs from the stored one.
func putTool(t *commit.Tx, tool, old store.Tool, was bool, diff *store.ToolDiff) error {
	if tool.Accepted == "" {
		tool.Accepted = old.Accepted
	}
	switch {
	case !was:
		diff.Added = append(diff.Added, tool.ID())
	case old.Pin != tool.Pin:
		diff.Changed = append(diff.Changed, tool.ID())
	}
	if tool.State == store.ToolQuarantined || tool.State == store.ToolRefused {
		diff.Held = append(diff.Held, tool.ID())
	}
	b, err := encodeTool(tool)
	if err != nil {
		return err
	}
	k := commit.Key(tool.Server, tool.Name)
	if was && string(t.Get("tools", k)) == string(b) {
		return nil
	}
	return t.Put("tools", k, b)
}

// GetTool implements [store.Tools].
func (d Catalog) GetTool(ctx context.Context, id string) (tool store.Tool, err error) {
	err = d.db.Read(ctx, "reading tool "+id, func(t *commit.Tx) (err error) {
		tool, err = loadTool(t, id)
		return err
	})
	return tool, err
}

func loadTool(t *commit.Tx, id string) (store.Tool, error) {
	server, name, ok := store.SplitToolID(id)
	v := t.Get("tools", commit.Key(server, name))
	if !ok || v == nil {
		return store.Tool{}, store.ErrNotFound
	}
	return decodeTool(v)
}

// ListTools implements [store.Tools].
func (d Catalog) ListTools(ctx context.Context, server string) (list []store.Tool, err error) {
	var prefix []byte
	if server != "" {
		prefix = commit.Key(server, "")
	}
	err = d.db.Read(ctx, "listing tools", func(t *commit.Tx) error {
		return t.Each("tools", prefix, func(_, v []byte) error {
			tool, err := decodeTool(v)
			if n := len(list); n > 0 && list[n-1].Server == tool.Server {
				tool.Server = list[n-1].Server
			}
			list = append(list, tool)
			return err
		})
	})
	if server == "" { // the tools of one server are in the order of their keys
		slices.SortFunc(list, func(a, b store.Tool) int { return strings.Compare(a.ID(), b.ID()) })
	}
	return list, err
}

// AcceptTool implements [store.Tools]. A tool that was refused for its schema stays
// refused; any other becomes accepted.
func (d Catalog) AcceptTool(ctx context.Context, by store.Caller, id, pin string) error {
	return d.db.Write(ctx, "accepting tool "+id, func(t *commit.Tx) error {
		tool, err := loadTool(t, id)
		switch {
		case err != nil:
			return err
		case tool.Pin != pin:
			return fmt.Errorf("%w: its definition is now %.12s, not %.12s", store.ErrConflict, tool.Pin, pin)
		case tool.State == store.ToolRefused:
			return store.Mark(fmt.Errorf("%s", strings.Join(tool.Findings, "; ")), store.ErrRefused)
		}
		tool.Accepted, tool.State, tool.Was = pin, store.ToolAccepted, nil
		b, err := encodeTool(tool)
		if err != nil {
			return err
		}
		if err := t.Put("tools", commit.Key(tool.Server, tool.Name), b); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "tools", ID: tool.Server})
		return t.Event(commit.Note{By: by, Kind: "tool.accept", Subject: id, Tool: id, Data: struct {
			Pin string `json:"pin"`
		}{pin}})
	})
}
