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
	"time"

	openai "github.com/sashabaranov/go-openai"

	"nize/daemon/api"
)

const roundsEach = 40 // rounds of a program in each of b.rounds

// programRounds compares a round of two steps over HTTP with the same loop as
// somebody would write it on the client of the model and that of the tool.
func (b *bench) programRounds(ctx context.Context) (err error) {
	up, err := startUpstream(ctx, "", batch{})
	if err != nil {
		return err
	}
	defer up.kill()
	model := httptest.NewServer(http.HandlerFunc(answerRound))
	defer model.Close()
	d, err := b.startNized(ctx, "rounds")
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
	config := openai.DefaultConfig("no-key")
	config.BaseURL = model.URL + "/v1"
	direct := openai.NewClientWithConfig(config)
	loop := func(ctx context.Context, _ int) error { return directRound(ctx, direct, tool) }
	request := fmt.Appendf(nil, `{"model":"m/m","messages":[{"role":"user","content":"Write page 1."}],"tools":[{"type":"mcp","server_label":"book","server_url":%q,"allowed_tools":[],"require_approval":"never"}]}`, up.url(0))
	web := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer web.CloseIdleConnections()
	round := func(ctx context.Context, _ int) error { return d.round(ctx, web, key, request) }
	for _, w := range []work{loop, round} {
		if _, err := p50(ctx, roundsEach, w); err != nil {
			return err
		}
	}
	var directs, rounds []time.Duration
	var cpu time.Duration
	for range b.rounds {
		alone, err := p50(ctx, roundsEach, loop)
		if err != nil {
			return err
		}
		begin := d.cpu()
		through, err := p50(ctx, roundsEach, round)
		if err != nil {
			return err
		}
		cpu += d.cpu() - begin
		directs, rounds = append(directs, alone), append(rounds, through)
	}
	without := median(directs)
	b.table.add(row{what: "a program's round of two steps, above the same loop on go-openai and the SDK, p50", value: millis(median(rounds) - without), unit: "ms", reference: number(millis(without)) + " ms direct", aim: 3})
	b.table.add(row{what: "its CPU per round", value: millis(cpu) / float64(b.rounds*roundsEach), unit: "ms", aim: 1.5, missing: noProc(cpu)})
	return nil
}

// answerRound is the model: it calls the tool, and then says what came of it.
func answerRound(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if bytes.Contains(body, []byte(`"role":"tool"`)) {
		fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"It is written."},"finish_reason":"stop"}]}`+"\n\n")
	} else {
		fmt.Fprint(w, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"`+writeTool+`","arguments":"{\"page\":1}"}}]},"finish_reason":"tool_calls"}]}`+"\n\n")
	}
	fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10}}`+"\n\ndata: [DONE]\n\n")
}

// directRound is the loop without nize.
func directRound(ctx context.Context, model *openai.Client, tool *client) error {
	messages := []openai.ChatCompletionMessage{{Role: "user", Content: "Write page 1."}}
	offered := []openai.Tool{{Type: "function", Function: &openai.FunctionDefinition{Name: writeTool, Description: "Writes a page of the book.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"page":{"type":"integer"}},"required":["page"]}`)}}}
	for {
		stream, err := model.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{Model: "m", Messages: messages, Tools: offered, StreamOptions: &openai.StreamOptions{IncludeUsage: true}})
		if err != nil {
			return fmt.Errorf("asking the model: %w", err)
		}
		said := openai.ChatCompletionMessage{Role: "assistant"}
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("reading the model's answer: %w", err)
			}
			for _, c := range chunk.Choices {
				said.Content += c.Delta.Content
				said.ToolCalls = append(said.ToolCalls, c.Delta.ToolCalls...)
			}
		}
		_ = stream.Close() // it is read
		if len(said.ToolCalls) == 0 {
			return nil
		}
		messages = append(messages, said)
		for _, c := range said.ToolCalls {
			if err := tool.call(ctx, c.Function.Name, json.RawMessage(c.Function.Arguments)); err != nil {
				return err
			}
			messages = append(messages, openai.ChatCompletionMessage{Role: "tool", ToolCallID: c.ID, Content: hundred})
		}
	}
}

// project makes one whose rounds need nobody, and returns its key.
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

// round asks for one, and wants it completed in two steps.
func (d *nized) round(ctx context.Context, web *http.Client, key string, request []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.addr+"/llm-exec/round", bytes.NewReader(request))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("x-api-key", key)
	resp, err := web.Do(req)
	if err != nil {
		return fmt.Errorf("asking for a round: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && !(bytes.Contains(body, []byte(`"status":"completed"`)) && bytes.Contains(body, []byte(`"steps":2`))) {
		err = fmt.Errorf("a round came to %s", body)
	}
	return err
}
