package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/store"
)

// PutServer implements [store.Servers]. Revisions come from one counter for
// all servers, so that a name that is used again never repeats one.
func (d *DB) PutServer(ctx context.Context, by store.Caller, s store.Server, rev uint64) (store.Server, error) {
	err := d.update(ctx, "storing server "+s.Name, func(t *tx) error {
		if err := store.CheckSlug(s.Name); err != nil {
			return err
		}
		if err := t.checkGroups(s.Visibility); err != nil {
			return err
		}
		if err := t.checkApprovers(s.Approvers); err != nil {
			return err
		}
		old, err := getJSON[store.Server](t, "servers", []byte(s.Name))
		switch {
		case errors.Is(err, store.ErrNotFound) && rev != 0:
			return fmt.Errorf("%w: it was removed", store.ErrConflict)
		case errors.Is(err, store.ErrNotFound):
			if s.Created.IsZero() {
				s.Created = t.now
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
		return t.saveServer(by, &s)
	})
	if err != nil {
		return store.Server{}, err
	}
	return s, nil
}

// saveServer stores a server with its next revision.
func (t *tx) saveServer(by store.Caller, s *store.Server) (err error) {
	t.writes++
	if s.Revision, err = t.b.Sequence("servers", 1); err != nil {
		return err
	}
	if err := t.putJSON("servers", []byte(s.Name), s); err != nil {
		return err
	}
	t.change(store.Change{Kind: "server", ID: s.Name})
	return t.event(auditNote{by: by, kind: "server.put", subject: s.Name, data: s})
}

// DeleteServer implements [store.Servers]. Vectors are cached by the hash of
// their content, which servers may share; they go by the bound of their cache.
func (d *DB) DeleteServer(ctx context.Context, by store.Caller, name string) error {
	return d.update(ctx, "removing server "+name, func(t *tx) error {
		if t.get("servers", []byte(name)) == nil {
			return store.ErrNotFound
		}
		if err := t.del("servers", []byte(name)); err != nil {
			return err
		}
		for _, bucket := range []string{"tools", "lessons"} {
			if err := t.delPrefix(bucket, key(name, "")); err != nil {
				return err
			}
		}
		t.change(store.Change{Kind: "server", ID: name})
		t.change(store.Change{Kind: "tools", ID: name})
		if err := t.event(auditNote{by: by, kind: "server.delete", subject: name}); err != nil {
			return err
		}
		return t.unlistServer(by, name)
	})
}

// GetServer implements [store.Servers].
func (d *DB) GetServer(ctx context.Context, name string) (s store.Server, err error) {
	err = d.view(ctx, "reading server "+name, func(t *tx) (err error) {
		s, err = getJSON[store.Server](t, "servers", []byte(name))
		return err
	})
	return s, err
}

// ListServers implements [store.Servers].
func (d *DB) ListServers(ctx context.Context) (list []store.Server, err error) {
	err = d.view(ctx, "listing servers", func(t *tx) (err error) {
		list, err = listJSON[store.Server](t, "servers", nil)
		return err
	})
	return list, err
}

// encodeTool keeps the server's own bytes of the schemas.
func encodeTool(tool store.Tool) ([]byte, error) {
	head := tool
	head.InputSchema, head.OutputSchema, head.Meta = nil, nil, nil
	b, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	return pack(b, tool.InputSchema, tool.OutputSchema, tool.Meta), nil
}

func decodeTool(v []byte) (store.Tool, error) {
	p, err := unpackN(v, 4)
	if err != nil {
		return store.Tool{}, err
	}
	tool, err := decodeJSON[store.Tool](p[0])
	tool.InputSchema, tool.OutputSchema, tool.Meta = cloneBytes(p[1]), cloneBytes(p[2]), cloneBytes(p[3])
	if tool.Accepted == tool.Pin { // of most tools, and they are kept for long
		tool.Accepted = tool.Pin
	}
	return tool, err
}

// PutTools implements [store.Tools]. The server must be registered, unless its
// name is one of nize's own (native, agent).
func (d *DB) PutTools(ctx context.Context, by store.Caller, server string, tools []store.Tool) (store.ToolDiff, error) {
	var diff store.ToolDiff
	err := d.update(ctx, "storing the tools of "+server, func(t *tx) error {
		diff = store.ToolDiff{}
		if t.get("servers", []byte(server)) == nil && server != "native" && server != "agent" {
			return fmt.Errorf("server %q %w", server, store.ErrNotFound)
		}
		before := t.writes
		gone := map[string]store.Tool{}
		err := t.each("tools", key(server, ""), func(_, v []byte) error {
			tool, err := decodeTool(v)
			gone[tool.Name] = tool
			return err
		})
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, tool := range tools {
			if err := checkIDs("tool name", tool.Name); err != nil {
				return err
			}
			if seen[tool.Name] {
				return fmt.Errorf("%w tools: %q is listed twice", store.ErrInvalid, tool.Name)
			}
			seen[tool.Name] = true
			tool.Server = server
			old, was := gone[tool.Name]
			delete(gone, tool.Name)
			if err := t.putTool(tool, old, was, &diff); err != nil {
				return err
			}
		}
		for name := range gone {
			diff.Removed = append(diff.Removed, server+":"+name)
			for _, bucket := range []string{"tools", "lessons"} {
				if err := t.del(bucket, key(server, name)); err != nil {
					return err
				}
			}
		}
		slices.Sort(diff.Removed)
		if t.writes == before {
			return nil
		}
		t.change(store.Change{Kind: "tools", ID: server})
		if len(diff.Added)+len(diff.Changed)+len(diff.Removed) == 0 {
			return nil // a state or a finding: the trail has the definitions only
		}
		return t.event(auditNote{by: by, kind: "tools.put", subject: server, data: diff})
	})
	if err != nil {
		return store.ToolDiff{}, err
	}
	return diff, nil
}

// putTool stores one tool of a list, if it differs from what is there.
func (t *tx) putTool(tool, old store.Tool, was bool, diff *store.ToolDiff) error {
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
	k := key(tool.Server, tool.Name)
	if was && string(t.get("tools", k)) == string(b) {
		return nil
	}
	return t.put("tools", k, b)
}

// GetTool implements [store.Tools].
func (d *DB) GetTool(ctx context.Context, id string) (tool store.Tool, err error) {
	err = d.view(ctx, "reading tool "+id, func(t *tx) (err error) {
		tool, err = t.loadTool(id)
		return err
	})
	return tool, err
}

func (t *tx) loadTool(id string) (store.Tool, error) {
	server, name, ok := store.SplitToolID(id)
	v := t.get("tools", key(server, name))
	if !ok || v == nil {
		return store.Tool{}, store.ErrNotFound
	}
	return decodeTool(v)
}

// ListTools implements [store.Tools].
func (d *DB) ListTools(ctx context.Context, server string) (list []store.Tool, err error) {
	var prefix []byte
	if server != "" {
		prefix = key(server, "")
	}
	err = d.view(ctx, "listing tools", func(t *tx) error {
		return t.each("tools", prefix, func(_, v []byte) error {
			tool, err := decodeTool(v)
			if n := len(list); n > 0 && list[n-1].Server == tool.Server {
				tool.Server = list[n-1].Server
			}
			list = append(list, tool)
			return err
		})
	})
	if server == "" { // those of one have the order of their keys
		slices.SortFunc(list, func(a, b store.Tool) int { return strings.Compare(a.ID(), b.ID()) })
	}
	return list, err
}

// AcceptTool implements [store.Tools]. A tool that its schema refused stays
// refused; any other becomes accepted.
func (d *DB) AcceptTool(ctx context.Context, by store.Caller, id, pin string) error {
	return d.update(ctx, "accepting tool "+id, func(t *tx) error {
		tool, err := t.loadTool(id)
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
		if err := t.put("tools", key(tool.Server, tool.Name), b); err != nil {
			return err
		}
		t.change(store.Change{Kind: "tools", ID: tool.Server})
		return t.event(auditNote{by: by, kind: "tool.accept", subject: id, tool: id, data: struct {
			Pin string `json:"pin"`
		}{pin}})
	})
}
