package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"nize/daemon/api"
)

const (
	roundsEach = 100  // rounds of a program in each of b.rounds
	talks      = 1000 // conversations at once
	talkRounds = 5    // of each
)

// programRounds compares a round of two steps over HTTP with the same loop written directly
// with the clients of the model and the tool: each is a process that sends requests to this
// one, which is the model, and to the tool's.
func (b *bench) programRounds(ctx context.Context) (err error) {
	up, err := startUpstream(ctx, "", batch{})
	if err != nil {
		return err
	}
	defer up.kill()
	model := httptest.NewServer(http.HandlerFunc(answerRound))
	defer model.Close()
	// All conversations connect at the same moment, from one address. By default nized closes
	// an address's connections beyond 128 that haven't authenticated yet, oldest first, so
	// some would end with EOF before nized had read their key.
	most := strconv.Itoa(talks)
	d, err := b.startNized(ctx, "rounds", "NIZE_HTTP_MAX_UNAUTHENTICATED="+most, "NIZE_HTTP_MAX_PER_ADDRESS="+most)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	key, err := d.project(ctx, model.URL)
	if err != nil {
		return err
	}
	tool, err := connect(ctx, up.url(0), "")
	if err != nil {
		return err
	}
	defer tool.close()
	direct := loopModel(model.URL)
	alone, err := startLoop(ctx, loopSpec{Model: model.URL, Tool: up.url(0)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone.stop()) }()
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: talks}, Timeout: patience}
	defer web.CloseIdleConnections()
	say := func(ctx context.Context, conversation, text string) (string, error) {
		return d.round(ctx, web, key, fmt.Appendf(nil, `{"model":"m/m","conversation_id":%q,"messages":[{"role":"user","content":%q}],"tools":[{"type":"mcp","server_label":"book","server_url":%q,"allowed_tools":[],"require_approval":"never"}]}`, conversation, text, up.url(0)))
	}
	round := func(ctx context.Context, _ int) error { _, err := say(ctx, "", firstAsk); return err }
	if _, err := alone.rounds(roundsEach); err != nil { // warm
		return err
	}
	if _, err := p50(ctx, roundsEach, round); err != nil {
		return err
	}
	var directs, rounds []time.Duration
	var cpu, loopCPU time.Duration
	for range b.rounds {
		without, err := alone.rounds(roundsEach)
		if err != nil {
			return err
		}
		begin := d.cpu()
		through, err := p50(ctx, roundsEach, round)
		if err != nil {
			return err
		}
		cpu, loopCPU = cpu+d.cpu()-begin, loopCPU+without.CPU
		directs, rounds = append(directs, without.P50), append(rounds, through)
	}
	without, each := median(directs), float64(b.rounds*roundsEach)
	b.table.add(row{what: "a program's round of two steps, above the same loop on go-openai and the SDK, p50", value: millis(median(rounds) - without), unit: "ms", reference: number(millis(without)) + " ms direct", aim: 3})
	b.table.add(row{what: "nized's CPU per round", value: millis(cpu) / each, unit: "ms", missing: noProc(cpu)})
	b.table.add(row{what: "the loop's own CPU per round", value: millis(loopCPU) / each, unit: "ms"})
	b.table.add(row{what: "nized's CPU per round above the loop's", value: millis(cpu-loopCPU) / each, unit: "ms", aim: 1.5, missing: noProc(cpu)})
	return b.manyTalks(ctx, d, say, func(ctx context.Context, text string, before []openai.ChatCompletionMessage) ([]openai.ChatCompletionMessage, error) {
		return directRound(ctx, direct, tool, before, text)
	})
}

// manyTalks runs all conversations concurrently, each with its own marker: first directly,
// then through nized.
func (b *bench) manyTalks(ctx context.Context, d *nized, say func(ctx context.Context, conversation, text string) (string, error),
	directly func(ctx context.Context, text string, before []openai.ChatCompletionMessage) ([]openai.ChatCompletionMessage, error)) error {
	text := func(n, round int) string { return fmt.Sprintf("Write page %d of canary-%d-end.", round, n) }
	began := time.Now()
	if _, err := rate(ctx, talks, talks, func(ctx context.Context, n int) (err error) {
		var before []openai.ChatCompletionMessage
		for i := 0; i < talkRounds && err == nil; i++ {
			before, err = directly(ctx, text(n, i), before)
		}
		return err
	}); err != nil {
		return err
	}
	alone, began := time.Since(began), time.Now()
	for _, key := range []string{"limits.rounds", "limits.project.rounds"} {
		if _, err := api.PutSetting.Call(ctx, d.api, api.PutSettingRequest{Key: key, Value: strconv.Itoa(talks)}); err != nil {
			return fmt.Errorf("setting %s: %w", key, err)
		}
	}
	memory := func() float64 { return memoryOf(d.cmd.Process.Pid, "RssAnon:") }
	heap := func() float64 {
		status, err := api.GetStatus.Call(ctx, d.api, api.Empty{})
		if err != nil {
			return 0
		}
		return float64(status.Process.HeapBytes) / (1 << 20)
	}
	before, heapBefore, most, heapMost := memory(), heap(), 0.0, 0.0
	var crossed atomic.Int64
	ended := make(chan error, 1)
	go func() {
		_, err := rate(ctx, talks, talks, func(ctx context.Context, n int) error {
			conversation := ""
			for i := range talkRounds {
				answer, err := say(ctx, conversation, text(n, i))
				if err != nil {
					return err
				}
				if found := canaries.FindAllString(answer, -1); len(found) != 1 || found[0] != fmt.Sprintf("canary-%d-end", n) {
					crossed.Add(1)
				}
				_, conversation, _ = strings.Cut(answer, `"conversation_id":"`)
				conversation, _, _ = strings.Cut(conversation, `"`)
			}
			return nil
		})
		ended <- err
	}()
	tick, slow := time.NewTicker(5*time.Millisecond), time.NewTicker(250*time.Millisecond)
	defer tick.Stop()
	defer slow.Stop()
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
			running = false
		case <-tick.C:
			most = max(most, memory())
		case <-slow.C:
			heapMost = max(heapMost, heap())
		}
	}
	took := time.Since(began)
	what := fmt.Sprintf("%d conversations of %d rounds at once", talks, talkRounds)
	b.table.add(row{what: what + ": crossed", value: float64(crossed.Load()), counted: true, floor: 0.5})
	b.table.add(row{what: what, value: took.Seconds(), unit: "s", reference: number(alone.Seconds()) + " s direct"})
	b.table.add(row{what: "its own memory with them, at most", value: most, unit: "MB", reference: number(before) + " MB before, " + number(memory()) + " MB after", missing: noProc(most)})
	b.table.add(row{what: "its heap with them, at most", value: heapMost, unit: "MB", reference: number(heapBefore) + " MB before, " + number(heap()) + " MB after"})
	return nil
}

const firstAsk = "Write page 1 of canary-0-end."

// canaries matches the markers that distinguish conversations.
var canaries = regexp.MustCompile(`canary-\d+-end`)

// answerRound simulates the model: it calls the tool, and then repeats the result with each
// canary that it received.
func answerRound(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if asked := bytes.LastIndex(body, []byte(`"role":"user"`)); bytes.LastIndex(body, []byte(`"role":"tool"`)) > asked {
		found := canaries.FindAllString(string(body), -1)
		slices.Sort(found)
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"content":"It is written: %s."},"finish_reason":"stop"}]}`+"\n\n", strings.Join(slices.Compact(found), " "))
	} else {
		fmt.Fprint(w, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"`+writeTool+`","arguments":"{\"page\":1}"}}]},"finish_reason":"tool_calls"}]}`+"\n\n")
	}
	fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10}}`+"\n\ndata: [DONE]\n\n")
}

// directRound runs the loop without nize; it returns the resulting conversation.
func directRound(ctx context.Context, model *openai.Client, tool *client, messages []openai.ChatCompletionMessage, text string) ([]openai.ChatCompletionMessage, error) {
	messages = append(messages, openai.ChatCompletionMessage{Role: "user", Content: text})
	offered := []openai.Tool{{Type: "function", Function: &openai.FunctionDefinition{Name: writeTool, Description: "Writes a page of the book.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"page":{"type":"integer"}},"required":["page"]}`)}}}
	for {
		stream, err := model.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{Model: "m", Messages: messages, Tools: offered, StreamOptions: &openai.StreamOptions{IncludeUsage: true}})
		if err != nil {
			return nil, fmt.Errorf("asking the model: %w", err)
		}
		said := openai.ChatCompletionMessage{Role: "assistant"}
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("reading the model's answer: %w", err)
			}
			for _, c := range chunk.Choices {
				said.Content += c.Delta.Content
				said.ToolCalls = append(said.ToolCalls, c.Delta.ToolCalls...)
			}
		}
		_ = stream.Close() // it is read
		messages = append(messages, said)
		if len(said.ToolCalls) == 0 {
			return messages, nil
		}
		for _, c := range said.ToolCalls {
			if err := tool.call(ctx, c.Function.Name, json.RawMessage(c.Function.Arguments)); err != nil {
				return nil, err
			}
			messages = append(messages, openai.ChatCompletionMessage{Role: "tool", ToolCallID: c.ID, Content: hundred})
		}
	}
}

// project creates a project whose rounds need no approval, and returns its key.
func (d *nized) project(ctx context.Context, model string) (key string, err error) {
	for _, s := range [][2]string{{"approvals.mode", "none"}, {"egress.allow", "127.0.0.1"}, {"budgets.user.daily", "0"}} {
		if _, err := api.PutSetting.Call(ctx, d.api, api.PutSettingRequest{Key: s[0], Value: s[1]}); err != nil {
			return "", fmt.Errorf("setting %s: %w", s[0], err)
		}
	}
	if _, err := api.AddProvider.Call(ctx, d.api, api.AddProviderRequest{Name: "m", Kind: "openai-compatible", BaseURL: model + "/v1", Key: api.NewSecret("no-key")}); err != nil {
		return "", fmt.Errorf("adding the provider: %w", err)
	}
	if _, err := api.AddProject.Call(ctx, d.api, api.AddProjectRequest{Name: "bench"}); err != nil {
		return "", fmt.Errorf("adding the project: %w", err)
	}
	made, err := api.CreateProjectKey.Call(ctx, d.api, api.CreateProjectKeyRequest{Project: "bench"})
	return made.Secret.Reveal(), err
}

// round runs a round, checks that it completes in two steps, and returns the answer.
func (d *nized) round(ctx context.Context, web *http.Client, key string, request []byte) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.addr+"/llm-exec/round", bytes.NewReader(request))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("x-api-key", key)
	resp, err := web.Do(req)
	if err != nil {
		return "", fmt.Errorf("asking for a round: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && !(bytes.Contains(body, []byte(`"status":"completed"`)) && bytes.Contains(body, []byte(`"steps":2`))) {
		err = fmt.Errorf("a round came to %s", body)
	}
	return string(body), err
}
