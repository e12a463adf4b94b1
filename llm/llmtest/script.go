// Package llmtest has the scripted double of a model.
package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"nize/llm"
	"nize/store"
)

// Step is one reply of a [Script].
type Step struct {
	Text   string // streamed in words
	Calls  []store.ToolCall
	Usage  llm.Usage
	Opaque json.RawMessage
	Finish string // "" means stop, or tool_calls if there are Calls
	Err    error  // returned after Text was streamed

	Check func(llm.Request) // checks the request first
	// Wait, if set, is received from after Text was streamed; a cancelled context ends the
	// wait.
	Wait <-chan struct{}
}

// Script is a model with scripted replies. If it is called more often than it has steps, it
// fails the test. It is safe for concurrent use.
type Script struct {
	tb testing.TB

	mu       sync.Mutex // guards the fields below
	steps    []Step
	requests []llm.Request
}

var _ llm.Model = (*Script)(nil)

// New returns a script. At the end of the test every step must have been used.
func New(tb testing.TB, steps ...Step) *Script {
	s := &Script{tb: tb, steps: steps}
	tb.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if left := len(s.steps); left > 0 && !tb.Failed() {
			tb.Errorf("the script has %d steps that were not asked for", left)
		}
	})
	return s
}

// Call returns a function call with the given arguments.
func Call(name string, args any) store.ToolCall {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // a mistake in the test
	}
	return store.ToolCall{Provider: "call_" + name, Name: name, Args: string(raw)}
}

// Execute returns a call that executes a tool.
func Execute(tool string, params any) store.ToolCall {
	return Call(llm.ExecuteTool, map[string]any{"tool_id": tool, "params": params})
}

// Add appends steps.
func (s *Script) Add(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, steps...)
}

// Requests returns the requests so far.
func (s *Script) Requests() []llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]llm.Request(nil), s.requests...)
}

// Generate plays the next step.
func (s *Script) Generate(ctx context.Context, req llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	step, err := s.next(req)
	if err != nil {
		return llm.Reply{}, err
	}
	if step.Check != nil {
		step.Check(req)
	}
	if delta != nil {
		for word := range llm.SplitWords(step.Text) {
			delta(llm.Delta{Text: word})
		}
	}
	if step.Wait != nil {
		select {
		case <-step.Wait:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return llm.Reply{}, context.Cause(ctx)
	}
	if step.Err != nil {
		return llm.Reply{}, step.Err
	}
	finish := step.Finish
	if finish == "" {
		finish = "stop"
		if len(step.Calls) > 0 {
			finish = "tool_calls"
		}
	}
	return llm.Reply{Text: step.Text, Calls: step.Calls, Usage: step.Usage, Opaque: step.Opaque, Finish: finish}, nil
}

func (s *Script) next(req llm.Request) (Step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	if len(s.steps) == 0 {
		s.tb.Errorf("the model was asked %d times, beyond its script", len(s.requests))
		return Step{}, fmt.Errorf("llmtest: the script is at its end")
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	return step, nil
}
