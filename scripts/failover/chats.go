package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/eventstream"
)

const (
	public  = "nize.example" // the host of the page, whichever nized responds
	perChat = 5              // messages of a conversation
)

// chats are the running conversations, each with two clients of another kind.
type chats struct {
	cookie string   // of the page
	token  string   // of the program
	said   sync.Map // acknowledged messages, to their conversation
	seen   sync.Map // sent messages, to what their client saw since: a *sights
}

// sights are what a client saw of one message, one line each.
type sights struct {
	mu    sync.Mutex
	lines []string
}

// saw records what the client of a message saw, which is printed if it is wrong.
func (c *chats) saw(key, format string, args ...any) {
	at, _ := c.seen.LoadOrStore(key, new(sights))
	s := at.(*sights)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// until repeats do until it returns true.
func (f *failover) until(ctx context.Context, who string, do func(context.Context) bool) {
	for since := time.Now(); ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
		one, end := context.WithTimeout(ctx, patience)
		done := do(one)
		end()
		if done {
			f.answered(who, since)
			return
		}
	}
}

// answer sends a request to the nth of them, and reports whether it succeeded. It records
// what the client of a message saw.
func (f *failover) answer(ctx context.Context, key, method string, n int, path string, h http.Header, body, to any) bool {
	sent, _ := json.Marshal(body) // texts always encode
	asked := time.Now()
	resp, err := f.request(ctx, method, n, path, h, string(sent))
	if err != nil {
		f.chats.saw(key, "%s %s asked at %s: %v", method, path, asked.UTC().Format("15:04:05.000"), err)
		return false
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	f.chats.saw(key, "%s %s asked at %s: nized %s answered %d %v %s", method, path, asked.UTC().Format("15:04:05.000"), f.which(resp.Request.URL.Host), resp.StatusCode, err, tail(string(got)))
	return err == nil && resp.StatusCode < 300 && (to == nil || json.Unmarshal(got, to) == nil)
}

// which returns a nized's index in the list and its number of starts, by its address.
func (f *failover) which(addr string) string {
	for i, n := range f.list {
		if n.addr == addr {
			return fmt.Sprintf("%d (start %d)", i, n.starts.Load())
		}
	}
	return addr
}

// tail returns the end of a response.
func tail(s string) string {
	const most = 1200
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// page simulates a browser until load ends and its last turn has ended: it sends its
// message again with the same key until it is acknowledged, and follows another nized each
// time that its stream ends.
func (f *failover) page(ctx, load context.Context) {
	h := http.Header{"Host": {public}, "Sec-Fetch-Site": {"same-origin"}, "Cookie": {f.chats.cookie}}
	var th store.Thread
	n := 0
	for said := 0; load.Err() == nil; said++ {
		if said%perChat == 0 {
			f.until(ctx, "conversations of the page", func(ctx context.Context) bool {
				n++
				return f.answer(ctx, fmt.Sprintf("page-%d", said), http.MethodPost, n, "/app/v1/chat/threads", h, api.StartConversationRequest{Servers: []string{"books"}}, &th)
			})
		}
		key := fmt.Sprintf("page-%d", said)
		f.until(ctx, "messages of the page", func(ctx context.Context) bool {
			n++
			return f.answer(ctx, key, http.MethodPost, n, "/app/v1/chat/threads/"+th.ID+"/messages", h, map[string]string{"key": key, "text": `Write a note: text="` + key + `"`}, nil)
		})
		if ctx.Err() != nil {
			return // it was not acknowledged
		}
		f.chats.said.Store(key, th.ID)
		streams := 0
		f.until(ctx, "ends of turns on the page", func(ctx context.Context) bool {
			n++
			streams++
			return f.follow(ctx, key, n, th.ID, h)
		})
		f.add("streams of the page that went on elsewhere", streams-1)
		pause(load, 500*time.Millisecond)
	}
}

// follow approves the waiting calls of a conversation until its turn has ended; each stream
// begins with the whole state.
func (f *failover) follow(ctx context.Context, key string, n int, thread string, h http.Header) bool {
	resp, err := f.request(ctx, http.MethodGet, n, "/app/v1/events?thread="+thread, h, "")
	if err != nil {
		f.chats.saw(key, "follows: %v", err)
		return false
	}
	defer resp.Body.Close()
	f.chats.saw(key, "follows nized %s: %d", f.which(resp.Request.URL.Host), resp.StatusCode)
	if resp.StatusCode != http.StatusOK {
		return false
	}
	stream := eventstream.NewReader(resp.Body, 1<<20)
	said := false
	for {
		one, err := stream.Next()
		if err != nil {
			break
		}
		event, data := one.Name, string(one.Data)
		var e struct {
			State    string
			IDs      []string
			Messages []store.Message
		}
		f.chats.saw(key, "event %s %s", event, tail(data))
		_ = json.Unmarshal([]byte(data), &e) // ignore other events
		last := len(e.Messages) - 1
		// An acknowledged message may not be in the conversation yet: until it is, the
		// previous turn is the one that has ended.
		if said = said || strings.Contains(data, `\"`+key+`\"`); !said {
			continue
		}
		if e.State == api.ChatIdle && (event == "state" || last >= 0 && e.Messages[last].Kind != "person") {
			return true
		}
		for _, id := range e.IDs {
			var card store.Card
			if !f.answer(ctx, key, http.MethodGet, n+1, "/app/v1/approvals/"+id, h, nil, &card) ||
				!f.answer(ctx, key, http.MethodPost, n+2, "/app/v1/approvals/"+id, h, api.DecideCallRequest{Verb: store.Approve, Digest: card.Digest}, nil) {
				return false // the next stream contains what waits
			}
			f.decided.Store(id, true)
		}
	}
	return false
}

// program simulates a chat client. If it got no response it reads the conversation. If its
// message isn't there, it continues in another conversation: a late message would end the
// turn of the next one.
func (f *failover) program(ctx, load context.Context) {
	h := http.Header{"Authorization": {"Bearer " + f.chats.token}}
	thread, n := "", 0
	for said := 0; load.Err() == nil; said++ {
		if said%perChat == 0 {
			thread = ""
		}
		key := fmt.Sprintf("program-%d", said)
		var a api.ChatAnswer
		asked := false
		f.until(ctx, "turns over /api/chat", func(ctx context.Context) bool {
			n++
			if !asked {
				asked = true
				ok := f.answer(ctx, key, http.MethodPost, n, "/api/chat", h, api.ChatRequest{Message: `Write a note: text="` + key + `"`, Conversation: thread, Servers: []string{"books"}}, &a)
				if !ok && thread == "" {
					return true // the conversation is unknown
				}
				thread = max(thread, a.Conversation)
			} else if len(a.ProposedCalls) > 0 {
				c := a.ProposedCalls[0]
				a = api.ChatAnswer{}
				if f.answer(ctx, key, http.MethodPost, n, "/api/run-tool", h, api.RunToolRequest{CallID: c.ID, Decision: "run", Digest: c.Digest}, &a) {
					f.decided.Store(c.ID, true)
				}
			} else {
				var view api.ChatConversationView
				if !f.answer(ctx, key, http.MethodGet, n, "/api/conversations/"+thread, h, nil, &view) {
					return false
				}
				var last api.ChatMessage
				for _, m := range view.Messages {
					if m.Role == "user" || m.Role == "notice" || m.Role == "assistant" && len(m.ToolCalls) == 0 {
						last = m
					}
					if m.Role == "user" && strings.Contains(m.Content, `"`+key+`"`) {
						a.Conversation = thread
					}
				}
				if a.Conversation == "" {
					f.chats.saw(key, "it is not in %s", thread)
					thread = ""
					return true
				}
				a.ProposedCalls = view.ProposedCalls
				if last.Role != "user" {
					a.Status = "completed"
				}
			}
			if a.Conversation != "" {
				f.chats.said.Store(key, thread)
			}
			return a.Status == "completed" || a.Status == "failed"
		})
		pause(load, 500*time.Millisecond)
	}
}

// signIn creates the person of the chats, at the only running nized.
func (f *failover) signIn(ctx context.Context, c *api.Client) error {
	if _, err := api.AddUser.Call(ctx, c, api.AddUserRequest{Name: "ann"}); err != nil {
		return err
	}
	token, err := api.CreateToken.Call(ctx, c, api.CreateTokenRequest{Name: "chats", User: "ann", Audience: store.ForAPI})
	if err != nil {
		return err
	}
	f.chats.token = token.Secret.Reveal()
	made, err := api.StartLogin.Call(ctx, c, api.StartLoginRequest{User: "ann"})
	if err != nil {
		return err
	}
	_, secret, _ := strings.Cut(made.URL.Reveal(), "#")
	h := http.Header{"Host": {public}, "Sec-Fetch-Site": {"same-origin"}}
	begun, err := f.request(ctx, http.MethodGet, 0, "/login", h, "")
	if err != nil {
		return err
	}
	_ = begun.Body.Close() // it leads on to a form
	for _, c := range begun.Cookies() {
		h.Set("Cookie", c.Name+"="+c.Value)
	}
	_, form, _, err := f.ask(ctx, http.MethodGet, 0, begun.Header.Get("Location"), h, "")
	if err != nil {
		return err
	}
	field := regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(form)
	if field == nil {
		return errors.New("the page for signing in has no form")
	}
	h.Set("Content-Type", "application/x-www-form-urlencoded")
	in, err := f.request(ctx, http.MethodPost, 0, "/login", h, url.Values{"form": {field[1]}, "secret": {secret}}.Encode())
	if err != nil {
		return err
	}
	_ = in.Body.Close()
	for _, c := range in.Cookies() {
		if c.Value != "" {
			f.chats.cookie = c.Name + "=" + c.Value
		}
	}
	_, err = api.PutSetting.Call(ctx, c, api.PutSettingRequest{Key: "limits.user.messages", Value: "0"})
	return err
}

// check verifies that each message has one answer, and that each requested call ran once,
// unless it was reported as lost.
func (c *chats) check(ctx context.Context, to *api.Client, ran map[string]int, states map[string]store.State) (wrong []string, err error) {
	views := map[string]api.ThreadView{}
	bad := map[string]string{}
	said, lost := 0, 0
	for key, id := range c.said.Range {
		key, id := key.(string), id.(string)
		view, ok := views[id]
		if !ok {
			if view, err = api.ShowConversation.Call(ctx, to, api.ShowConversationRequest{ID: id, Reason: "failover"}); err != nil {
				return nil, fmt.Errorf("reading conversation %s: %w", id, err)
			}
			views[id] = view
		}
		times, answers, place := 0, 0, -1
		for _, t := range view.Turns {
			if t.Role == store.FromUser && strings.Contains(t.Text, `"`+key+`"`) {
				times++
				place = t.N
			}
			if place >= 0 && t.Re == place && (t.Role == store.FromModel && len(t.Calls) == 0 || t.Role == store.FromNize && t.Final) {
				answers++
			}
		}
		said++
		if times != 1 || answers != 1 {
			wrong = append(wrong, fmt.Sprintf("%s was said, and is there %d times with %d answers", key, times, answers))
			bad[key] = id
		}
		if states[key] == store.Lost {
			lost++
		} else if states[key] != store.Done || ran[key] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s was said, its call is %q and ran %d times", key, states[key], ran[key]))
			bad[key] = id
		}
	}
	for key, id := range bad {
		fmt.Fprintf(os.Stderr, "\n%s in conversation %s, which has:\n", key, id)
		for _, t := range views[id].Turns {
			fmt.Fprintf(os.Stderr, "  %s turn %d %s re %d final %t key %q ended %q: %q %q calls %v\n", t.At.UTC().Format("15:04:05.000"), t.N, t.Role, t.Re, t.Final, t.Key, t.Ended, t.Text, t.CallID, t.Calls)
		}
		c.show(key)
		c.show(next(key))
	}
	fmt.Printf("%8d messages in %d conversations were acknowledged, %d were told that their call is lost\n", said, len(views), lost)
	return wrong, nil
}

// next returns the key of the client's next message.
func next(key string) string {
	who, n, _ := strings.Cut(key, "-")
	i, _ := strconv.Atoi(n) // the keys are ours
	return fmt.Sprintf("%s-%d", who, i+1)
}

// show prints what the client of a message saw.
func (c *chats) show(key string) {
	at, ok := c.seen.Load(key)
	if !ok {
		return
	}
	s := at.(*sights)
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(os.Stderr, "  the client of %s saw:\n", key)
	for _, line := range s.lines {
		fmt.Fprintf(os.Stderr, "    %s\n", line)
	}
}
