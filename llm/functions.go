package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nize/store"
)

// DirectTool is a tool that a model can call by name, without searching.
type DirectTool struct {
	ID       string // server:name
	Function store.Function
}

// maxDirect limits how many tools are offered by name, because each adds its schema to
// every prompt. Others are found by searching.
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

// directTool returns the tool of a function, "" if it has none.
func (w *work) directTool(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.direct[name]
}

// executeArgs returns the arguments of [ExecuteTool] for calling a tool by name.
func executeArgs(tool, args string) (string, error) {
	raw, err := json.Marshal(struct {
		Tool   string          `json:"tool_id"`
		Params json.RawMessage `json:"params"`
	}{tool, json.RawMessage(args)})
	return string(raw), err
}

// An agent may call the agents that its tool patterns contain as agent:ID; its model gets a
// function for each.
const (
	agentTool     = "agent:"
	agentFunction = "agent_"
	// maxAgents limits the depth of agents that call each other, including the
	// conversation's own.
	maxAgents = 3
	// maxFunction is the maximum length of a function's name.
	maxFunction = 64
)

var agentSchema = json.RawMessage(`{"type":"object","properties":{"task":{"type":"string","description":"what it is to do, with all that it needs to know: it sees nothing of this conversation"}},"required":["task"],"additionalProperties":false}`)

// addAgents adds the agents that this agent may call for by.
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

// mayCall reports whether this agent may call another for by: no agent calls itself,
// directly or through others.
func (w *work) mayCall(a store.Agent, by store.Caller, groups []string) bool {
	return store.MatchAny(w.profile.AllowedTools, agentTool+a.ID) && a.ID != w.profile.ID && !slices.Contains(w.callers, a.ID) &&
		len(agentFunction+a.ID) <= maxFunction && a.MayUse(by, groups)
}
