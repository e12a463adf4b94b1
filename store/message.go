package store

import (
	"encoding/json"
	"strings"
	"time"
)

// Inbound is a person's message as decoded by a platform.
type Inbound struct {
	Key     string `json:"key"` // the platform's id of the message, for deduplication
	Thread  string `json:"thread"`
	By      Caller `json:"by"`
	Text    string `json:"text"`
	Files   []File `json:"files,omitempty"`   // its attachments
	Instead string `json:"instead,omitempty"` // the Key of their last message, which this one replaces if that is unanswered
	// Earlier holds other people's earlier messages, if the platform was queried for them.
	Earlier *Earlier `json:"earlier,omitempty"`
}

// MessageKind selects how a renderer shows a message.
type MessageKind string

const (
	TextMessage   MessageKind = "text"   // the assistant's text, in Markdown
	ToolMessage   MessageKind = "tool"   // one line of activity that changes from the call to its result
	CardMessage   MessageKind = "card"   // a waiting call, or its outcome
	NoticeMessage MessageKind = "notice" // a message of nize itself
	ErrorMessage  MessageKind = "error"  // why the turn could not continue, in one sentence
	ImagesMessage MessageKind = "images" // the images returned by a call, which the platform fetches itself
)

// Message is what a platform shows. Posting it creates it at a place; updating replaces it
// there. Text is always the whole text so far.
type Message struct {
	ID      string      `json:"id"` // stable across updates: a turn's or call's id
	Kind    MessageKind `json:"kind"`
	Text    string      `json:"text,omitempty"`
	Final   bool        `json:"final,omitempty"` // no further updates
	Card    *Card       `json:"card,omitempty"`
	Tool    *ToolLine   `json:"tool,omitempty"`
	Turn    string      `json:"turn,omitempty"`  // of a text: the name of the stored turn, once it is stored
	For     *Asker      `json:"-"`               // author of the message that it answers, if known
	Only    string      `json:"-"`               // the only user who may read it, if others can read the thread; "" is everyone there
	Share   *Share      `json:"-"`               // the user may share this turn, in private messages
	Mention bool        `json:"-"`               // it mentions For, who no longer waits
	Link    string      `json:"-"`               // of images: the link to the result's view; "" is none
	Limit   bool        `json:"limit,omitempty"` // a notice: the turn reached its step limit
	// Finish is why the answer is incomplete (one of the Finish constants), and Remark is
	// nize's own text after it, in the reader's language, with which Text ends.
	Finish string `json:"finish_reason,omitempty"`
	Remark string `json:"remark,omitempty"`
}

// Asker is the author of the message that is being answered.
type Asker struct {
	User     string    `json:"user"`
	Identity string    `json:"identity,omitempty"` // on the surface of the thread
	At       time.Time `json:"at"`
}

// Share offers to show a private turn in the thread that requested it.
type Share struct {
	Thread string
	N      int // its number there
	In     Address
	Done   bool // it was shared
}

// ToolLine is the activity of one tool in a turn.
type ToolLine struct {
	Name  string `json:"name"` // discover_tools, toolbox:convert_time
	State State  `json:"state"`
	Brief Text   `json:"brief,omitzero"` // the request or the result, one line
	// Private reports that only the requester may see Brief.
	Private bool `json:"private,omitempty"`
	// Unmade reports that the call was never made, so there is nothing to look up.
	Unmade bool `json:"unmade,omitempty"`
}

// Card is what a person decides on. It is platform-neutral, and only nize creates it, from
// the call's canonical bytes.
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
	// Withheld reports that the reader may know that the call exists, but not its content:
	// Args, Why, Warnings and Outcome are omitted.
	Withheld bool `json:"withheld,omitempty"`
	// Private reports that only the requester may see the result: the card omits it.
	Private bool `json:"private,omitempty"`
	// InPrivateTurn reports that the call was proposed where only the requester reads.
	InPrivateTurn bool `json:"aside,omitempty"`
	// Together is the number of other waiting calls of the same step: RunAll approves them
	// together with this one.
	Together int `json:"together,omitempty"`
	// RepeatVerb is the verb that repeats the call, "" if it can't be repeated.
	RepeatVerb Verb `json:"redo,omitempty"`
	// Edited reports whether the call replaces one with other arguments.
	Edited bool `json:"edited,omitempty"`
	// Effect is the tool's effect according to annotations that an admin trusts.
	Effect Effect `json:"effect,omitempty"`
	// Fields are the tool's arguments in the order of its schema.
	Fields []string `json:"fields,omitempty"`
	// Successor is the call that replaced this one.
	Successor string `json:"successor,omitempty"`

	Expires  time.Time `json:"expires,omitzero"`
	State    State     `json:"state"`
	Approved bool      `json:"approved,omitempty"`
	Always   bool      `json:"always,omitempty"` // a standing "allow" would hold for this tool
	// Patterns are patterns for a standing answer to its command line, narrow ones first.
	Patterns []CardPattern `json:"patterns,omitempty"`
	// Asked reports whether another program runs it: its Server is a source of asks.
	Asked bool `json:"asked,omitempty"`
	// Question is set if the card is a question of a server: its answer is wanted, and
	// nothing runs.
	Question *Question `json:"question,omitempty"`
	// Here reports whether a standing "allow" could be limited to the call's conversation.
	Here      bool      `json:"here,omitempty"`
	DecidedBy string    `json:"decided_by,omitempty"`
	Ended     Ending    `json:"ended,omitempty"`   // how a person prevented it from running
	Took      int64     `json:"took_ms,omitempty"` // how long it ran, in milliseconds
	Settled   time.Time `json:"settled,omitzero"`  // when it was decided or ended
	Outcome   Text      `json:"outcome,omitzero"`  // the outcome of the call in one line
}

// CardPattern is an argument pattern for a standing answer.
type CardPattern struct {
	Args json.RawMessage `json:"args"`
	Line string          `json:"line"` // the pattern of the command line alone
	// Exact reports that it is the command line of the ask itself.
	Exact bool `json:"exact,omitempty"`
	// Repository and Host restrict it to the ask's repository and host; "" is anywhere.
	Repository string `json:"repository,omitempty"`
	Host       string `json:"host,omitempty"`

	Wide bool `json:"wide,omitempty"` // it allows more than it shows
	Risk Text `json:"risk,omitzero"`  // what more it allows
	// Covered is how many of the requester's Of asks of the last 30 days it would have
	// allowed.
	Covered int `json:"covered"`
	Of      int `json:"of"`
}

// Effect is what a tool does to the data that it works on, as far as nize relies on it.
type Effect string

// "" is unknown: the tool may change data.
const (
	Reads   Effect = "reads"
	Changes Effect = "changes" // it deletes nothing
	Deletes Effect = "deletes" // it may delete data
)

// Ending is how a person prevented a call from running, "" if no person did.
type Ending string

const (
	Declined  Ending = "declined"  // by a person who may approve it
	Withdrawn Ending = "withdrawn" // by its requester, while others decide
)

// CardVotes shows who may decide while the call waits: Need of the Approvers must approve,
// and Yes names those who did.
type CardVotes struct {
	Approvers    []Approver `json:"approvers,omitempty"`
	Need         int        `json:"need,omitempty"`
	NotRequester bool       `json:"not_requester,omitempty"`
	Yes          []string   `json:"yes,omitempty"`
}

// CardOrigin is the origin of the call.
type CardOrigin struct {
	ID string `json:"id"` // the call's
	// Requester is the user id of the requester, who may withdraw the call.
	Requester string  `json:"requester,omitempty"`
	In        Address `json:"in,omitzero"`     // the conversation, if others may open it
	Token     string  `json:"token,omitempty"` // the name of the client's token
	Step      string  `json:"step,omitempty"`  // of the turn that it came from, while it waits with others
	View      string  `json:"view,omitempty"`  // the tool, server:tool, whose view requested it
	Gone      bool    `json:"gone,omitempty"`  // its caller left: nothing waits for the result
}

// CardReason is why the call needs approval, what the server claims about its tool, and
// what would make approval unnecessary.
type CardReason struct {
	Claim Text `json:"claim,omitzero"`
	Asks  Text `json:"asks,omitzero"`
	Stops Text `json:"stops,omitzero"`
}

// Approver is one line of the list of approvers.
type Approver struct {
	Kind  string   `json:"kind"`            // requester, admins, channel-admins, channel, user or group
	Names []string `json:"names,omitempty"` // up to five people, or the group
	More  int      `json:"more,omitempty"`  // how many are not named
}

// Who returns who may decide.
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

// Progress is one event of an agent's work on a thread.
type Progress struct {
	Kind  string    // "text": Delta of a model's turn; "turn": that turn is stored; "tool": Tool changed; "call": Call changed; "error": Said is why the turn stopped, in one sentence; "notice": Said; "limit": a notice that the step limit is reached
	Turn  string    // an id of the model's turn that is being written, the same until it is stored
	Delta string    // text since the previous event
	Text  string    // for "turn" the whole text
	Said  Text      // an error or notice; of a turn, nize's remark after Text
	ID    string    // of the ToolCall, for "tool"
	Tool  *ToolLine // for "tool"
	Call  *Call     // for "call"
	Ends  bool      // of a "turn": it is the final answer
	// Finish is that of a "turn", see [Turn].
	Finish string
	For    string // the only user who may read Delta or Text, if others can read the thread
	Re     int    // with For: the number of the turn that is being answered
	// Stored is the [TurnID] of a stored turn, error or notice. It may not be the number
	// that Turn expected, because people write messages meanwhile.
	Stored string
}
