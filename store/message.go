package store

import (
	"encoding/json"
	"strings"
	"time"
)

// Inbound is a person's message as a platform decoded it.
type Inbound struct {
	Key     string `json:"key"` // the platform's own id of the message, for deduplication
	Thread  string `json:"thread"`
	By      Caller `json:"by"`
	Text    string `json:"text"`
	Files   []File `json:"files,omitempty"`   // that came with it
	Instead string `json:"instead,omitempty"` // the Key of their last message, in whose place it comes while that is not answered
	// Earlier is what was said before it by others, where the platform was asked.
	Earlier *Earlier `json:"earlier,omitempty"`
}

// MessageKind tells a renderer what a message is.
type MessageKind string

const (
	TextMessage   MessageKind = "text"   // the assistant's words, in Markdown
	ToolMessage   MessageKind = "tool"   // one line of activity that changes from calling to its result
	CardMessage   MessageKind = "card"   // a call that waits, or what became of it
	NoticeMessage MessageKind = "notice" // nize's own words
	ErrorMessage  MessageKind = "error"  // the turn could not go on, in one sentence
	ImagesMessage MessageKind = "images" // the images that a call returned, which the platform reads there
)

// Message is what a platform shows. Posting gives it a place; updating replaces
// it there. Text is always the whole text so far.
type Message struct {
	ID      string      `json:"id"` // stable over updates: a turn's or call's id
	Kind    MessageKind `json:"kind"`
	Text    string      `json:"text,omitempty"`
	Final   bool        `json:"final,omitempty"` // nothing more will change
	Card    *Card       `json:"card,omitempty"`
	Tool    *ToolLine   `json:"tool,omitempty"`
	Turn    string      `json:"turn,omitempty"`  // of a text: the name of the stored turn that it is, once it is one
	For     *Asker      `json:"-"`               // whose message it answers, where that is known
	Only    string      `json:"-"`               // the user who alone may read it where several people read along; "" is everybody there
	Share   *Share      `json:"-"`               // that user may share this turn, in private messages
	Mention bool        `json:"-"`               // it mentions For, who does not wait any more
	Link    string      `json:"-"`               // of images: where the result's view is opened; "" is none
	Limit   bool        `json:"limit,omitempty"` // a notice: the turn reached its step limit
	// Finish is why the answer is not whole (one of the Finish constants), and Remark
	// what Text ends with then: nize's own words, in the reader's language.
	Finish string `json:"finish_reason,omitempty"`
	Remark string `json:"remark,omitempty"`
}

// Asker is who wrote the message that is being answered.
type Asker struct {
	User     string    `json:"user"`
	Identity string    `json:"identity,omitempty"` // on the surface of the thread
	At       time.Time `json:"at"`
}

// Share offers to show a private turn in the thread where it was asked for.
type Share struct {
	Thread string
	N      int // its place there
	In     Address
	Done   bool // it was shared
}

// ToolLine is the activity of one tool in a turn.
type ToolLine struct {
	Name  string `json:"name"` // discover_tools, toolbox:convert_time
	State State  `json:"state"`
	Brief Text   `json:"brief,omitzero"` // what was asked or what came out, one line
	// Private says that Brief is for the requester alone.
	Private bool `json:"private,omitempty"`
	// Unmade says that the call was never made, so there is nothing to look up.
	Unmade bool `json:"unmade,omitempty"`
}

// Card is what a person decides on: platform-neutral, made from the call's
// canonical bytes by nize alone.
type Card struct {
	Call        string          `json:"call"` // its id, as ID
	Tool        string          `json:"tool"` // server:tool
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"` // the server's own claim
	Server      string          `json:"server"`
	Where       string          `json:"where"` // its command line or URL
	By          string          `json:"by"`
	RunsAs      Text            `json:"runs_as"`
	Why         string          `json:"why,omitempty"` // the model's own words
	Args        json.RawMessage `json:"args"`          // canonical, whole
	Warnings    []Text          `json:"warnings,omitempty"`
	Digest      string          `json:"digest"`
	Policy      Policy          `json:"policy"`
	CardVotes
	CardOrigin
	CardReason
	// Withheld says that the reader may know of the call, and not what it is about:
	// Args, Why, Warnings and Outcome are left out.
	Withheld bool `json:"withheld,omitempty"`
	// Private says that the result is for the requester alone: the card tells
	// nothing of it.
	Private bool `json:"private,omitempty"`
	// Aside says that the call was proposed where only the requester reads.
	InPrivateTurn bool `json:"aside,omitempty"`
	// Together counts the other calls of the same step that wait: RunAll
	// approves them together with this one.
	Together int `json:"together,omitempty"`
	// Redo is the verb that makes the call again, "" where it can't be.
	RepeatVerb Verb `json:"redo,omitempty"`
	// Edited reports whether the call stands in the place of one with other arguments.
	Edited bool `json:"edited,omitempty"`
	// Effect is what the tool does by annotations that an admin trusts.
	Effect Effect `json:"effect,omitempty"`
	// Fields are the tool's arguments in the order of its schema.
	Fields []string `json:"fields,omitempty"`
	// Successor is the call that replaced this one.
	Successor string `json:"successor,omitempty"`

	Expires  time.Time `json:"expires,omitzero"`
	State    State     `json:"state"`
	Approved bool      `json:"approved,omitempty"`
	Always   bool      `json:"always,omitempty"` // a standing "allow" would hold for this tool
	// Patterns are what a standing answer could cover of its command line, the narrow
	// ones first.
	Patterns []CardPattern `json:"patterns,omitempty"`
	// Asked reports whether another program runs it: its Server is a source of asks.
	Asked bool `json:"asked,omitempty"`
	// Here reports whether a standing "allow" could be for the call's conversation.
	Here      bool      `json:"here,omitempty"`
	DecidedBy string    `json:"decided_by,omitempty"`
	Ended     Ending    `json:"ended,omitempty"`   // how a person kept it from running
	Took      int64     `json:"took_ms,omitempty"` // how long it ran, in milliseconds
	Settled   time.Time `json:"settled,omitzero"`  // when it was decided, or ended
	Outcome   Text      `json:"outcome,omitzero"`  // the end of a call in one line
}

// CardPattern is a pattern of arguments for a standing answer.
type CardPattern struct {
	Args json.RawMessage `json:"args"`
	Line string          `json:"line"` // the pattern of the command line alone
	// Exact reports that it is the command line of the ask itself.
	Exact bool `json:"exact,omitempty"`
	// Repository and Host are where alone it would hold: the ask's; "" is anywhere.
	Repository string `json:"repository,omitempty"`
	Host       string `json:"host,omitempty"`

	Wide bool `json:"wide,omitempty"` // it lets more through than it shows
	Risk Text `json:"risk,omitzero"`  // what that is
	// Covered is how many of the requester's asks of the last 30 days it would have
	// allowed, of Of that there were.
	Covered int `json:"covered"`
	Of      int `json:"of"`
}

// Effect is what a tool does to what it works on, as far as nize relies on it.
type Effect string

// "" is unknown: the tool may change things.
const (
	Reads   Effect = "reads"
	Changes Effect = "changes" // it destroys nothing
	Deletes Effect = "deletes" // it may destroy something
)

// Ending is how a person kept a call from running, "" if no person did.
type Ending string

const (
	Declined  Ending = "declined"  // by somebody who may approve it
	Withdrawn Ending = "withdrawn" // by its requester, while others decide
)

// CardVotes says in nize's own words who may press while the call waits: Need
// of the Approvers must say yes, and Yes names who did.
type CardVotes struct {
	Approvers    []Approver `json:"approvers,omitempty"`
	Need         int        `json:"need,omitempty"`
	NotRequester bool       `json:"not_requester,omitempty"`
	Yes          []string   `json:"yes,omitempty"`
}

// CardOrigin is where the call comes from.
type CardOrigin struct {
	ID string `json:"id"` // the call's
	// Requester is the user id of who asked, who may withdraw it.
	Requester string  `json:"requester,omitempty"`
	In        Address `json:"in,omitzero"`     // the conversation, of those that others may open
	Token     string  `json:"token,omitempty"` // the name of the client's token
	Step      string  `json:"step,omitempty"`  // of the turn that it came from, while it waits with others
	View      string  `json:"view,omitempty"`  // the tool, server:tool, whose view asked
	Gone      bool    `json:"gone,omitempty"`  // its caller left: nobody waits for the result
}

// CardReason is why the call asks, what the server claims that its tool does,
// and what would make it stop asking.
type CardReason struct {
	Claim Text `json:"claim,omitzero"`
	Asks  Text `json:"asks,omitzero"`
	Stops Text `json:"stops,omitzero"`
}

// Approver is one line of who may press.
type Approver struct {
	Kind  string   `json:"kind"`            // requester, admins, channel-admins, channel, user or group
	Names []string `json:"names,omitempty"` // up to five people, or the group
	More  int      `json:"more,omitempty"`  // how many were not named
}

// Who says who may press.
func (c Card) Who() Text {
	var who Text
	for _, a := range c.Approvers {
		if who == (Text{}) {
			who = a.who()
		} else {
			who = Textf("%s, %s", who, a.who())
		}
	}
	if c.Need > 1 {
		who = Textf("%d different people of: %s", c.Need, who)
	}
	if c.NotRequester {
		who = Textf("%s; not %s, who asked", who, c.By)
	}
	return who
}

func (a Approver) who() Text {
	names := Plain(strings.Join(a.Names, ", "))
	if a.More > 0 {
		names = Textf("%s and %d more", names, a.More)
	}
	switch some := names != (Text{}); {
	case a.Kind == "admins" && some:
		return Textf("admins (%s)", names)
	case a.Kind == "admins":
		return Textf("admins")
	case a.Kind == "channel-admins" && some:
		return Textf("admins of the channel (%s)", names)
	case a.Kind == "channel-admins":
		return Textf("admins of the channel")
	case a.Kind == "channel":
		return Textf("anyone in the channel")
	case a.Kind == "group":
		return Textf("group %s", names)
	case a.Kind == "requester":
		return Textf("its requester %s", names)
	}
	return names
}

// Progress is what happens while an agent works on a thread.
type Progress struct {
	Kind  string    // "text": Delta of a model's turn; "turn": that turn is stored; "tool": Tool changed; "call": Call changed; "error": Said is in one sentence what stopped the turn; "notice": Said; "limit": a notice that the step limit is reached
	Turn  string    // an id of the model's turn that is being written, the same until it is stored
	Delta string    // text since the last one
	Text  string    // for "turn" the whole text
	Said  Text      // an error or notice; of a turn, nize's remark behind Text
	ID    string    // of the ToolCall, for "tool"
	Tool  *ToolLine // for "tool"
	Call  *Call     // for "call"
	Ends  bool      // of a "turn": it is the answer
	// Finish is that of a "turn", see [Turn].
	Finish string
	For    string // the user who alone may read Delta or Text where others read along
	Re     int    // with For: the place of the message that is being answered
	// Stored is the [TurnID] of a turn, an error or a notice that is stored: it
	// may not be the next one's, as Turn expects, since people write meanwhile.
	Stored string
}
