// Package outbox knows what stands where in a chat: what a thread shows and what
// of it is still to be sent ([Screen]), half answers of an earlier run, who may
// read a message, whom it mentions, and the copies of a card ([Copies]). All of
// it holds over restarts, by the places that the store keeps.
//
// It knows no platform: a [Platform] needs only to post and to edit. One that
// can find its own messages again ([Finder]) or delete them ([Remover]), or has
// places where one person reads alone, says so by the interfaces below.
package outbox

import (
	"context"
	"strings"

	"nize/store"
)

// Platform shows messages on one surface. What else a platform can is optional:
// [Presence], [Finder], [Remover], [PrivateThreads], [Courier], [Mentioner],
// [Replier] and [ImagePoster].
type Platform interface {
	Surface() store.Surface
	// Post shows m at the address of a thread and returns where m stands; the
	// place is remembered over restarts if it names a message.
	Post(ctx context.Context, to store.Address, m store.Message) (store.Address, error)
	// Update replaces what stands at an address that Post returned, maybe
	// before a restart. ErrNotFound says that nothing stands there any more.
	// Calls of Post and Update for one thread never overlap.
	Update(ctx context.Context, at store.Address, m store.Message) error
}

// State is what a thread does, as its people should see it.
type State string

const (
	Working State = "working" // the model or a tool is at it
	Waiting State = "waiting" // a call waits for a person
	Idle    State = "idle"    // the turn has ended
)

// Presence is what a [Platform] implements too where it can show a thread's
// state (a spinner, Slack's session status). Present is called after every
// message that belongs before the change was sent, and never at the same time
// as Post or Update of that thread.
type Presence interface {
	Present(ctx context.Context, to store.Address, s State) error
}

// Finder is what a [Platform] implements too where a message of nize's own can
// be found again by what it says, although nobody learned where it was posted.
type Finder interface {
	// Find returns where m stands in a thread, where it may say something older
	// by now. A text is the one message there of which nobody knows what it is,
	// and that is no older than what it answers. ErrNotFound if there is none.
	Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error)
}

// Remover is what a [Platform] implements too where a message of nize's own can
// be taken away.
type Remover interface {
	// Remove takes away all of what Post made of m there, which needs no more
	// than its id and kind. ErrNotFound if it is gone.
	Remove(ctx context.Context, at store.Address, m store.Message) error
}

// Replier is what a [Platform] implements too where a message in a private conversation
// can have a thread of its own.
type Replier interface {
	// Below is the thread of the message at an address.
	Below(at store.Address) store.Address
}

// ImagePoster is what a [Platform] implements too that can show images: it takes
// messages of [store.ImagesMessage], whose id is [ImagesOf] a call, and reads what
// that returned. Updating one changes nothing.
type ImagePoster interface {
	PostsImages() bool
}

// imagesPrefix heads the ids of messages that show what calls returned.
const imagesPrefix = "images/"

// ImagesOf is the id of the message that shows a call's images.
func ImagesOf(call string) string { return imagesPrefix + call }

// CallOfImages is the call whose images a message shows.
func CallOfImages(id string) (call string, ok bool) { return strings.CutPrefix(id, imagesPrefix) }
