package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/web"
	"nize/daemon/api"
	"nize/store"
)

// Files are uploaded one by one into a conversation before the message that they belong to.
// Their content is described when the message is sent, as in the chats.

var (
	addFile     = api.Upload[api.ConversationRequest, file]{Method: "POST", Path: api.ShowConversation.Path + "/files", Summary: "put a file into a conversation"}
	showFile    = api.Op[fileRequest, file]{Method: "GET", Path: api.ShowConversation.Path + "/files/{file}", Summary: "show a picture that came with a message"}
	sendMessage = api.Op[messageRequest, api.Empty]{Method: "POST", Path: api.SendMessage.Path, Summary: "send a message"}
)

// file is one that was uploaded into a conversation, or that came with a message.
type file struct {
	ID   string `json:"id"`
	Type string `json:"type,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// talked returns one of the caller's conversations on the page.
func (b *Browser) talked(ctx context.Context, by store.Caller, id string) (store.Thread, error) {
	th, err := b.own(ctx, by, id)
	if err == nil && th.Address.Surface != store.OnWeb {
		err = store.Mark(store.Errorf("this conversation is held on %s; go on with it there", string(th.Address.Surface)), store.ErrConflict)
	}
	return th, err
}

// addFile stores a file for the next message.
func (b *Browser) addFile(ctx context.Context, by store.Caller, req api.ConversationRequest, from api.File) (none file, err error) {
	th, err := b.talked(ctx, by, req.ID)
	if err != nil {
		return none, err
	}
	if from.Size == 0 || from.Size > store.MaxFile {
		return none, fmt.Errorf("%w file: %d bytes; 1 to %d are taken", store.ErrInvalid, from.Size, store.MaxFile)
	}
	data, err := io.ReadAll(from)
	if err != nil || int64(len(data)) != from.Size {
		return none, fmt.Errorf("%w file: the upload was cut off", store.ErrInvalid)
	}
	id := store.NewID(b.Now())
	return file{ID: id}, b.Store.PutFile(ctx, by, th.ID, store.File{ID: id, Data: data}, store.FileQuota(b.Config))
}

// messageRequest is a message with files that were uploaded into its conversation.
type messageRequest struct {
	api.SendMessageRequest
	Files []struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"files"`
	Instead string `json:"instead"` // key of the person's last message, which this one replaces
}

// fileWords is the text of a message that has only files, as in the chats.
const fileWords = "(file)"

// send accepts a message and shows it in every tab.
func (b *Browser) send(ctx context.Context, by store.Caller, req messageRequest) (none api.Empty, err error) {
	th, err := b.talked(ctx, by, req.Conversation)
	if err != nil {
		return none, err
	}
	if req.Key == "" {
		return none, fmt.Errorf("%w message: key is required", store.ErrInvalid)
	}
	if len(req.Files) > 2*store.MaxFiles {
		return none, fmt.Errorf("%w message: at most %d files go with one", store.ErrInvalid, store.MaxFiles)
	}
	var files []store.File
	for _, f := range req.Files {
		if !store.ValidID(f.ID) || slices.ContainsFunc(files, func(o store.File) bool { return o.ID == f.ID }) {
			return none, fmt.Errorf("%w file id", store.ErrInvalid)
		}
		files = append(files, store.File{ID: f.ID, Name: store.Clip(strings.Join(strings.Fields(bots.Plain(f.Name)), " "), 200)})
	}
	reader := account.Files{Store: b.Store, Config: b.Config}
	files, err = reader.Read(ctx, by, th.ID, files, func(ctx context.Context, n int) (store.File, []byte, string) {
		data, err := b.Store.GetFile(ctx, th.ID, files[n].ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			b.Log.Error("reading a file of a conversation", "thread", th.ID, "err", err)
			return files[n], nil, store.FileFailed
		}
		if err != nil {
			return files[n], nil, store.FileGone
		}
		return files[n], data, ""
	})
	if err != nil {
		return none, err
	}
	if len(files) > 0 {
		req.Text = cmp.Or(strings.TrimSpace(req.Text), fileWords)
	}
	// The page chooses the key; the conversation's id before it keeps pages apart.
	in := store.Inbound{Key: th.ID + ":" + req.Key, Thread: th.ID, By: by, Text: req.Text, Files: files}
	if req.Instead != "" {
		in.Instead = th.ID + ":" + req.Instead
		if err := b.takeBack(ctx, in); err != nil {
			return none, err
		}
	}
	fresh, err := b.Conversations.Handler.Message(ctx, in)
	if err != nil {
		return none, err
	}
	if fresh && in.Instead != "" {
		b.Platform.Gone(in.Thread, in.Instead)
	}
	in.Mask()
	b.Platform.Said(req.Conversation, web.Said(in, b.Now()))
	return none, nil
}

// takeBack stops the turn of the message that is being replaced. If that message is still
// queued, the running turn belongs to another message and continues. A repeated request
// stops nothing, so that it can't end the turn that the first one started.
func (b *Browser) takeBack(ctx context.Context, in store.Inbound) error {
	queued, err := b.queued(ctx, in.Thread)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(queued, func(o store.Inbound) bool { return o.Key == in.Instead || o.Key == in.Key }) {
		return nil
	}
	turns, err := b.Store.TurnsBefore(ctx, in.Thread, 0, turnsRead)
	if err != nil {
		return fmt.Errorf("reading the conversation: %w", err)
	}
	for _, t := range slices.Backward(turns) {
		if t.Role != store.FromUser {
			continue
		}
		if t.Key != in.Instead {
			return nil
		}
		if err := b.Conversations.Handler.Stop(ctx, in.By, in.Thread); err != nil || t.N > t.Replaces {
			return err
		}
		// The title was made from the replaced message.
		return b.Conversations.Change(ctx, in.By, in.Thread, func(th *store.Thread) {
			if !th.Named {
				th.Title = ""
			}
		})
	}
	return nil
}

// fileRequest names a file of a turn.
type fileRequest struct {
	ID   string `path:"id" json:"-"`
	File string `path:"file" json:"-"`
	Turn int    `query:"turn" json:"-"`
}

// showFile returns a picture that came with a message, to those who may read the message.
func (b *Browser) showFile(ctx context.Context, by store.Caller, req fileRequest) (none file, err error) {
	if _, err := b.readable(ctx, by, req.ID); err != nil {
		return none, err
	}
	turns, err := b.Store.TurnsBefore(ctx, req.ID, req.Turn+1, 1)
	if err != nil {
		return none, fmt.Errorf("reading the conversation: %w", err)
	}
	for _, t := range turns {
		for _, f := range t.SeenBy(by.User).Files {
			if f.ID == req.File && f.Kind == store.ImageFile {
				data, err := b.Store.GetFile(ctx, req.ID, f.ID)
				return file{f.ID, f.Type, data}, err
			}
		}
	}
	return none, fmt.Errorf("file %w", store.ErrNotFound)
}
