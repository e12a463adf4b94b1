package indexer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"sync"

	"nize/mcp/scan"
	"nize/mcp/upstream"
	"nize/store"
)

// maxJudged bounds the cached results: about 200 bytes per definition.
const maxJudged = 20_000

// Gate scans the definitions of upstream tools: each definition by itself, and its text
// against the names of other servers' tools. It caches the results, since a registration
// lists a server twice, and a refresh lists known definitions.
type Gate struct {
	scan.Gate
	ToolIDs       func(context.Context) ([]string, error) // of all tools
	NewDefinition func()                                  // called with each definition that is new to this process
	Log           *slog.Logger

	mu     sync.Mutex
	names  *scan.Names // of all tools; nil until read, and after a change
	judged map[[32]byte]judgement
}

// judgement is the result of scanning one definition by itself.
type judgement struct {
	pin      string
	findings []string
}

var _ upstream.Gate = (*Gate)(nil)

// Pin implements upstream.Gate.
func (g *Gate) Pin(server store.Server, instructions string, tool store.Tool) (pin string, findings []string) {
	j := g.judgeDefinition(server, instructions, tool)
	names := g.toolNames()
	if names == nil {
		return j.pin, append(j.findings[:len(j.findings):len(j.findings)], "it could not be compared with other servers' tools")
	}
	return j.pin, append(j.findings[:len(j.findings):len(j.findings)], g.Shadow(instructions, tool, names)...)
}

func (g *Gate) judgeDefinition(server store.Server, instructions string, tool store.Tool) judgement {
	key, ok := definition(server, instructions, tool)
	g.mu.Lock()
	j, known := g.judged[key]
	g.mu.Unlock()
	if known && ok {
		return j
	}
	g.NewDefinition()
	j.pin, j.findings = g.Gate.Pin(server, instructions, tool)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.judged == nil || len(g.judged) >= maxJudged {
		g.judged = map[[32]byte]judgement{}
	}
	if ok {
		g.judged[key] = j
	}
	return j
}

// definition returns a key for everything that the scan reads, byte for byte.
func definition(server store.Server, instructions string, tool store.Tool) (key [32]byte, ok bool) {
	// Of the record, only the fields that locate the server: the operator sets the others,
	// and they are not part of a definition.
	at := store.Server{Name: server.Name, Transport: server.Transport, Command: server.Command, Args: server.Args, Cwd: server.Cwd, URL: server.URL}
	record, err := json.Marshal(struct {
		Server      store.Server
		Annotations store.Annotations
	}{at, tool.Annotations})
	if err != nil {
		return key, false
	}
	h := sha256.New()
	for _, part := range [][]byte{record, []byte(instructions), []byte(tool.Server), []byte(tool.Name), []byte(tool.Title), []byte(tool.Description), tool.InputSchema, tool.OutputSchema, tool.Meta, tool.Icons} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	h.Sum(key[:0])
	return key, true
}

// toolNames returns the names of all tools, cached until something changes.
func (g *Gate) toolNames() *scan.Names {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.names == nil {
		ids, err := g.ToolIDs(context.Background())
		if err != nil {
			g.Log.Error("reading the names of tools", "err", err)
			return nil
		}
		g.names = scan.NewNames(ids)
	}
	return g.names
}

// ForgetNames drops the cached names.
func (g *Gate) ForgetNames() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names = nil
}
