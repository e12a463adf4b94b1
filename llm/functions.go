package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nize/store"
)

// DirectTool is a tool under the name by which a model calls it, without searching.
type DirectTool struct {
	ID       string // server:name
	Function store.Function
}

// maxDirect bounds how many tools are offered by name: each costs its schema in every
// prompt. All others are found by searching.
const maxDirect = 64

// addDirect adds the tools of an agent that wants them as functions.
func (w *work) addDirect(ctx context.Context, by store.Caller, functions []store.Function) ([]store.Function, error) {
	if !w.profile.Direct || w.Direct == nil {
		return functions, nil
	}
	list, err := w.Direct(ctx, by, w.scope())
	if err != nil {
		return nil, fmt.Errorf("listing the tools of agent %s: %w", w.profile.ID, err)
	}
	direct := make(map[string]string)
	for _, d := range list[:min(len(list), maxDirect)] {
		if !slices.ContainsFunc(functions, func(f store.Function) bool { return f.Name == d.Function.Name }) {
			functions, direct[d.Function.Name] = append(functions, d.Function), d.ID
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.direct = direct
	return functions, nil
}

// directTool is the tool behind a function, "" where it is no tool's.
func (w *work) directTool(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.direct[name]
}

// executeArgs are the arguments of [ExecuteTool] for a call of a tool by name.
func executeArgs(tool, args string) (string, error) {
	raw, err := json.Marshal(struct {
		Tool   string          `json:"tool_id"`
		Params json.RawMessage `json:"params"`
	}{tool, json.RawMessage(args)})
	return string(raw), err
}

// Agents that an agent may call are those that its tool patterns name as agent:ID;
// its model calls them by a function each.
const (
	agentTool     = "agent:"
	agentFunction = "agent_"
	// maxAgents bounds how many agents stand behind one another in a call, the
	// conversation's own among them.
	maxAgents = 3
	// maxFunction is how long a function's name may be.
	maxFunction = 64
)

var agentSchema = json.RawMessage(`{"type":"object","properties":{"task":{"type":"string","description":"what it is to do, with all that it needs to know: it sees nothing of this conversation"}},"required":["task"],"additionalProperties":false}`)

// addAgents adds the agents that this one may call for that person.
func (w *work) addAgents(ctx context.Context, by store.Caller, functions []store.Function) ([]store.Function, error) {
	names := slices.ContainsFunc(w.profile.AllowedTools, func(p string) bool { return strings.HasPrefix(p, agentTool) })
	if !names || len(w.callers)+1 >= maxAgents {
		return functions, nil
	}
	all, err := w.Agents.ListAgents(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing agents: %w", err)
	}
	groups := w.groupsOf(ctx, by)
	for _, a := range all {
		if !w.mayCall(a, by, groups) {
			continue
		}
		functions = append(functions, AgentFunction(agentFunction+a.ID, a))
	}
	return functions, nil
}

// mayCall says whether this agent may call another for that person: no agent calls
// itself, not over others either.
func (w *work) mayCall(a store.Agent, by store.Caller, groups []string) bool {
	return store.MatchAny(w.profile.AllowedTools, agentTool+a.ID) && a.ID != w.profile.ID && !slices.Contains(w.callers, a.ID) &&
		len(agentFunction+a.ID) <= maxFunction && a.MayUse(by, groups)
}
