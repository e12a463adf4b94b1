// Package outbox keeps track of the messages in a chat and delivers a thread's changes to
// its platform.
//
// A [Screen] holds what a thread shows and what is still to be sent. The package also
// handles partial answers of an earlier run, private messages, mentions, and the copies of
// a card ([Copies]). All of it works across restarts, because the store keeps the places of
// messages.
//
// It depends on no particular platform: a [Platform] only needs to post and edit. A
// platform that can find its own messages ([Finder]), delete them ([Remover]) or open
// private places implements the interfaces below.
package outbox

import (
	"context"
	"strings"

	"nize/store"
)

// Platform shows messages on one surface. Further abilities are optional interfaces:
// [Presence], [Finder], [Remover], [PrivateThreads], [Courier], [Mentioner], [Replier] and
// [ImagePoster].
type Platform interface {
	Surface() store.Surface
	// Post shows m at the address of a thread and returns m's place, which is stored across
	// restarts if it has a message.
	Post(ctx context.Context, to store.Address, m store.Message) (store.Address, error)
	// Update replaces the message at an address that Post returned, possibly before a
	// restart. It returns ErrNotFound if the message no longer exists. Calls of Post and
	// Update for one thread never overlap.
	Update(ctx context.Context, at store.Address, m store.Message) error
}

// State is a thread's activity as shown to people.
type State string

const (
	Working State = "working" // the model or a tool is running
	Waiting State = "waiting" // a call waits for a person
	Idle    State = "idle"    // the turn has ended
)

// Presence is implemented by a [Platform] that can show a thread's state (a spinner,
// Slack's session status). Present is called after all messages that precede the change
// were sent, and never concurrently with Post or Update of that thread.
type Presence interface {
	Present(ctx context.Context, to store.Address, s State) error
}

// Finder is implemented by a [Platform] that can find one of nize's own messages by its
// content, if its place was never learned.
type Finder interface {
	// Find returns the place of m in a thread; the message there may have older content. A
	// text is identified as the only unaccounted-for message that is not older than the
	// message it answers. ErrNotFound if there is none.
	Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error)
}

// Remover is implemented by a [Platform] that can delete nize's own messages.
type Remover interface {
	// Remove deletes everything that Post made of m there; only m's id and kind are needed.
	// ErrNotFound if it no longer exists.
	Remove(ctx context.Context, at store.Address, m store.Message) error
}

// Replier is implemented by a [Platform] on which a message in a private conversation can
// have its own thread.
type Replier interface {
	// Below returns the thread of the message at an address.
	Below(at store.Address) store.Address
}

// ImagePoster is implemented by a [Platform] that can show images. It accepts messages of
// kind [store.ImagesMessage], whose id is [ImagesOf] a call, and reads that call's result.
// Updating such a message has no effect.
type ImagePoster interface {
	PostsImages() bool
}

// imagesPrefix is the prefix of the ids of messages that show call results.
const imagesPrefix = "images/"

// ImagesOf returns the id of the message that shows a call's images.
func ImagesOf(call string) string { return imagesPrefix + call }

// CallOfImages returns the call whose images a message shows.
func CallOfImages(id string) (call string, ok bool) { return strings.CutPrefix(id, imagesPrefix) }
