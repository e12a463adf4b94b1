package store

import (
	"context"
	"slices"
	"time"
)

// FileKind is how nize treats a file attached to a message.
type FileKind string

const (
	TextFile   FileKind = "text"   // its text is read
	ImageFile  FileKind = "image"  // it is passed to models that accept images
	UnreadFile FileKind = "unread" // only its name and the reason are known
	// DocumentFile is a PDF or DOCX: it is kept so that it can be saved as a document.
	DocumentFile FileKind = "document"
)

// Reasons why a file was not read.
const (
	FileTooLarge   = "too_large"
	FileTooMany    = "too_many"    // the message has more files than nize reads
	FileOther      = "other_kind"  // neither text nor an image that models accept
	FileGone       = "gone"        // deleted, or hidden by the platform
	FileForeign    = "foreign"     // it is stored elsewhere and the platform has only a link
	FileDenied     = "denied"      // the platform does not show it to nize
	FileFailed     = "unavailable" // it could not be fetched
	FileNoCapacity = "no_room"     // the storage quota for images is used up
)

// Limits of what comes with a message, on every surface.
const (
	MaxFiles    = 10        // files read per message
	MaxFile     = 20 << 20  // bytes of one file
	MaxFileText = 64 << 10  // bytes of text kept of one file
	MaxTexts    = 128 << 10 // bytes of text kept of all files of one message
	MaxQuotes   = 50        // earlier messages passed with one message
	MaxQuote    = 4 << 10   // bytes of one earlier message
	MaxQuoted   = 24 << 10  // bytes of all earlier messages
)

// File is a file attached to a message. Text is stored with the turn; [Files] stores the
// bytes of an image, a document or a longer text until the conversation is deleted.
type File struct {
	ID   string   `json:"id"` // the platform's id; unique in its conversation
	Name string   `json:"name"`
	Kind FileKind `json:"kind"`
	Type string   `json:"type,omitempty"` // the media type, detected from the content
	Size int64    `json:"size,omitempty"` // of the whole file, in bytes; 0 is unknown
	Text string   `json:"text,omitempty"` // of a text file: only the beginning if Cut is set
	Cut  int64    `json:"cut,omitempty"`  // omitted bytes
	Why  string   `json:"why,omitempty"`  // why it was not read
	From *Speaker `json:"from,omitempty"` // who shared it, if not the author of the message
	Data []byte   `json:"-"`              // the bytes stored by [Files], while received or passed to a model
}

// Speaker is another person whose words or files the author of a message includes.
type Speaker struct {
	Name     string `json:"name"`
	Identity string `json:"identity,omitempty"` // surface:team:user
	Bot      bool   `json:"bot,omitempty"`      // a program
	// Outside is set if the speaker is not a full member of the team: a guest, a member of
	// another workspace, a program. Their words taint a conversation.
	Outside bool `json:"outside,omitempty"`
}

// Quote is an earlier message by anyone. It is not an instruction of the requester.
type Quote struct {
	Speaker
	Text  string    `json:"text"`
	At    time.Time `json:"at,omitzero"`
	About bool      `json:"about,omitempty"` // the question is about this message
}

// Earlier holds the messages of a thread before a message that the assistant has not seen.
type Earlier struct {
	Quotes []Quote       `json:"quotes,omitempty"` // oldest first
	Left   int           `json:"left,omitempty"`   // the number of older messages omitted
	Unread bool          `json:"unread,omitempty"` // the lookup failed
	Views  []ViewContext `json:"views,omitempty"`  // contexts that views sent since the author's last message
}

// ViewContext is what the view of a call passes to the model with the viewer's next
// message: output of the call's tool, not the viewer's words.
type ViewContext struct {
	Call      string `json:"call_id"`
	Tool      string `json:"tool"`
	User      string `json:"user"` // the viewer
	Text      string `json:"text"`
	Private   bool   `json:"private,omitempty"`   // the call's result is only for User
	Untrusted bool   `json:"untrusted,omitempty"` // the output of the tool's server is
}

// Untrusted reports whether a turn contains words of someone who is not a full member of
// the team, or untrusted output. Such text may try to steer the assistant.
func (t Turn) Untrusted() bool {
	for _, f := range t.Files {
		if f.From != nil && f.From.Outside {
			return true
		}
	}
	if t.Earlier == nil {
		return false
	}
	for _, q := range t.Earlier.Quotes {
		if q.Outside {
			return true
		}
	}
	return slices.ContainsFunc(t.Earlier.Views, func(v ViewContext) bool { return v.Untrusted })
}

// WithinLimits reports whether a message and its attachments are within the limits. Files
// that were not read count for little; [MaxFiles] limits those that were.
func (in Inbound) WithinLimits() bool {
	files, texts, quoted := 0, 0, 0
	for _, f := range in.Files {
		if f.Kind != UnreadFile {
			files++
		}
		texts += len(f.Text)
		if len(f.ID) > maxName || len(f.Name) > maxName || len(f.Text) > MaxFileText {
			return false
		}
	}
	if in.Earlier != nil {
		for _, q := range in.Earlier.Quotes {
			quoted += len(q.Text)
			if len(q.Name) > maxName || len(q.Text) > MaxQuote {
				return false
			}
		}
		if len(in.Earlier.Quotes) > MaxQuotes {
			return false
		}
	}
	return files <= MaxFiles && len(in.Files) <= 2*MaxFiles && texts <= MaxTexts && quoted <= MaxQuoted
}

// maxName limits the names in a message's attachments, in bytes.
const maxName = 1024

// Mask masks text that looks like a key in a message and its attachments. It reports
// whether the author sent one; keys in other people's words are theirs to revoke.
func (in *Inbound) Mask() (masked bool) {
	mask := func(s *string, own bool) {
		if LooksSecret(*s) {
			*s, masked = RedactText(*s), masked || own
		}
	}
	mask(&in.Text, true)
	for i := range in.Files {
		f := &in.Files[i]
		mask(&f.Name, f.From == nil)
		mask(&f.Text, f.From == nil)
	}
	if in.Earlier != nil {
		for i := range in.Earlier.Quotes {
			mask(&in.Earlier.Quotes[i].Text, false)
		}
	}
	return masked
}

// Files stores the files of conversations. A file is deleted with its conversation or with
// its sender's messages.
type Files interface {
	// PutFile stores f.Data as the file f.ID of a conversation and replaces an existing
	// file of that id. It counts for the quota of by over all conversations. If the quota
	// is exceeded, [Quota.MakeRoom] selects the files to delete. It returns ErrRefused if
	// that isn't enough.
	PutFile(ctx context.Context, by Caller, thread string, f File, q Quota) error
	// GetFile returns the bytes of a file, or ErrNotFound if they are no longer stored.
	GetFile(ctx context.Context, thread, id string) ([]byte, error)
}
