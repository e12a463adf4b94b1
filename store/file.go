package store

import (
	"context"
	"slices"
	"time"
)

// FileKind is what nize makes of a file that came with a message.
type FileKind string

const (
	TextFile   FileKind = "text"   // its text is read
	ImageFile  FileKind = "image"  // it is passed to models that take images
	UnreadFile FileKind = "unread" // its name alone is known, and why
	// DocumentFile is a PDF or DOCX: it is kept, to be saved as a document if asked for.
	DocumentFile FileKind = "document"
)

// Reasons why a file was not read.
const (
	FileTooLarge   = "too_large"
	FileTooMany    = "too_many"    // there were more with the message than are read
	FileOther      = "other_kind"  // neither text nor a picture that models take
	FileGone       = "gone"        // deleted, or hidden by the platform
	FileForeign    = "foreign"     // it is kept elsewhere, the platform has a link to it only
	FileDenied     = "denied"      // the platform does not show it to nize
	FileFailed     = "unavailable" // it could not be fetched
	FileNoCapacity = "no_room"     // the capacity for pictures is used up
)

// Bounds on what comes with a message; they hold for every surface.
const (
	MaxFiles    = 10        // that are read of one message
	MaxFile     = 20 << 20  // bytes of one file
	MaxFileText = 64 << 10  // bytes of text that are kept of one file
	MaxTexts    = 128 << 10 // bytes of text that are kept of all files of one message
	MaxQuotes   = 50        // earlier messages that are given with one
	MaxQuote    = 4 << 10   // bytes of one of them
	MaxQuoted   = 24 << 10  // bytes of all of them
)

// File is one that came with a message. What is text is kept with the turn;
// the bytes of a picture, a document or a text that is longer are kept by [Files] and
// go with the conversation.
type File struct {
	ID   string   `json:"id"` // the platform's own; unique in its conversation
	Name string   `json:"name"`
	Kind FileKind `json:"kind"`
	Type string   `json:"type,omitempty"` // the media type, told by the content
	Size int64    `json:"size,omitempty"` // of the whole file, in bytes; 0 is not known
	Text string   `json:"text,omitempty"` // of a text file: its beginning where Cut is set
	Cut  int64    `json:"cut,omitempty"`  // bytes of it that are left out
	Why  string   `json:"why,omitempty"`  // of one that was not read
	From *Speaker `json:"from,omitempty"` // who shared it, where that is not the author of the message
	Data []byte   `json:"-"`              // of what [Files] keeps, on its way in and to a model
}

// Speaker is somebody whose words or files the author of a message brings.
type Speaker struct {
	Name     string `json:"name"`
	Identity string `json:"identity,omitempty"` // surface:team:user
	Bot      bool   `json:"bot,omitempty"`      // a program
	// Outside is set for who is no full member of the team: a guest, somebody
	// of another workspace, a program. Their words taint a conversation.
	Outside bool `json:"outside,omitempty"`
}

// Quote is what somebody wrote before a message. It is no word of who asks.
type Quote struct {
	Speaker
	Text  string    `json:"text"`
	At    time.Time `json:"at,omitzero"`
	About bool      `json:"about,omitempty"` // the question is about this one
}

// Earlier is what was said in a thread before a message and is new to the
// assistant.
type Earlier struct {
	Quotes []Quote       `json:"quotes,omitempty"` // oldest first
	Left   int           `json:"left,omitempty"`   // how many older ones are left out
	Unread bool          `json:"unread,omitempty"` // it could not be looked up
	Views  []ViewContext `json:"views,omitempty"`  // what views told since the author's last message
}

// ViewContext is what the view of a call tells the model with the next message of who
// looks at it: output of the call's tool, and no word of that person.
type ViewContext struct {
	Call      string `json:"call_id"`
	Tool      string `json:"tool"`
	User      string `json:"user"` // who looks at it
	Text      string `json:"text"`
	Private   bool   `json:"private,omitempty"`   // the call's result is for User alone
	Untrusted bool   `json:"untrusted,omitempty"` // the output of the tool's server is
}

// Untrusted says whether a turn brings words of somebody who is no full member
// of the team, or untrusted output: they may be made to steer the assistant.
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

// WithinLimits says whether what came with a message is within its bounds. Files that
// were not read count for little; [MaxFiles] bounds those that were.
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

// maxName is how long the names in what came with a message may be, in bytes.
const maxName = 1024

// Mask takes out of a message, and of what came with it, what looks like a key
// . It says whether the author brought one; what others wrote is
// theirs to revoke.
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

// Files keeps the pictures of conversations. They go with their conversation,
// and with the words of who sent them.
type Files interface {
	// PutFile keeps f.Data as the file f.ID of a conversation, in place of what
	// it kept under that name. It counts for the quota of by, who gave it, over all
	// conversations; what has to go for it is up to [Quota.MakeRoom]. ErrRefused if
	// that isn't enough.
	PutFile(ctx context.Context, by Caller, thread string, f File, q Quota) error
	// GetFile returns those bytes. ErrNotFound if they are not kept any more.
	GetFile(ctx context.Context, thread, id string) ([]byte, error)
}
