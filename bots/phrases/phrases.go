// Package phrases holds nize's own words to people, by language.
//
// A catalogue maps a [Key] to a sentence; every catalogue has every key (a
// test keeps it so). [For] finds the catalogue that fits a BCP 47 locale best
// and falls back to English, so a person always reads a whole sentence, never
// a key. The words of models, servers and other people are never translated.
package phrases

import (
	"fmt"
	"strings"
)

// Key names one sentence. The arguments that it takes stand in its comment.
type Key string

const (
	Language Key = "language" // the tag of the catalogue itself
	Comma    Key = "comma"    // between the parts of a list
	Units    Key = "units"    // of days, hours, minutes and seconds, with commas between

	CardTitle       Key = "card.title"       // tool
	CardPlanned     Key = "card.planned"     // tool
	CardApproved    Key = "card.approved"    // tool
	CardRunning     Key = "card.running"     // tool
	CardDone        Key = "card.done"        // tool
	CardFailed      Key = "card.failed"      // tool
	CardRefused     Key = "card.refused"     // tool
	CardLapsed      Key = "card.lapsed"      // tool
	CardCancelled   Key = "card.cancelled"   // tool
	CardLost        Key = "card.lost"        // tool
	CardServer      Key = "card.server"      // name, address
	CardBy          Key = "card.by"          // name
	CardRunsAs      Key = "card.runs_as"     // identity in words
	CardDescription Key = "card.description" // none; the server's claim follows
	CardWhy         Key = "card.why"         // none; the model's words follow
	CardArguments   Key = "card.arguments"   // none; the arguments follow
	CardNoArguments Key = "card.no_arguments"
	CardNotJSON     Key = "card.not_json"
	CardWarning     Key = "card.warning"    // sentence
	CardDigest      Key = "card.digest"     // head of the digest
	CardExpires     Key = "card.expires"    // time, span
	CardExpiresAt   Key = "card.expires_at" // time
	CardExpired     Key = "card.past"       // time
	CardState       Key = "card.state"      // state in words
	CardOutcome     Key = "card.outcome"    // one line
	CardCall        Key = "card.call"       // id
	CardMay         Key = "card.may"        // who may press
	CardYes         Key = "card.yes"        // names, how many, of how many

	MayAdmins             Key = "may.admins"
	MayAdminsNamed        Key = "may.admins.named" // names
	MayChannelAdmins      Key = "may.channel_admins"
	MayChannelAdminsNamed Key = "may.channel_admins.named" // names
	MayChannel            Key = "may.channel"
	MayGroup              Key = "may.group" // name
	MayMore               Key = "may.more"  // names, how many more
	MayNeed               Key = "may.need"  // how many, of whom
	MayNot                Key = "may.not"   // who may, who asked

	Reminder Key = "reminder" // tool, call

	AboutStreaming Key = "about.streaming"
	HereStreams    Key = "streaming.here"
	HereWhole      Key = "streaming.here.off"
	OwnStreams     Key = "streaming.own"
	OwnWhole       Key = "streaming.own.off"

	HelpThreads Key = "help.threads" // names

	KeyThere         Key = "key.there" // name, server
	KeyLacks         Key = "key.lacks" // name, server
	KeyGone          Key = "key.gone"  // names, server
	KeyPut           Key = "key.put"   // server
	KeysNone         Key = "keys.none"
	KeysHow          Key = "keys.how"
	AboutCredentials Key = "about.credentials"
	ConnectTitle     Key = "connect.title"
	ConnectLabel     Key = "connect.label" // name, server
	KeyRefused       Key = "key.refused"
	ConnectHint      Key = "connect.hint"
	ConnectFailed    Key = "connect.failed"
	ButtonConnect    Key = "button.connect"
	ButtonDisconnect Key = "button.disconnect"
	ButtonRevoke     Key = "button.revoke"
	ButtonOpenCard   Key = "button.open_card"
	ButtonBringCard  Key = "button.bring_card"
	CardBrought      Key = "card.brought"
	CardNotWaiting   Key = "card.not_waiting"
	ConfirmTitle     Key = "confirm.title"
	ConfirmNo        Key = "confirm.no"
	ConfirmToken     Key = "confirm.token" // name
	ConfirmKey       Key = "confirm.key"   // name, server
	HomeChats        Key = "home.chats"
	HomeAgent        Key = "home.agent"
	HomeModel        Key = "home.model"
	HomeLanguage     Key = "home.language"
	HomeLanguageAuto Key = "home.language.auto"
	HomeStreaming    Key = "home.streaming"
	HomeStreams      Key = "home.streams"
	HomeNoStreaming  Key = "home.no_streaming"
	HomeWaiting      Key = "home.waiting"
	HomeWaitingLine  Key = "home.waiting.line" // tool, name, span
	HomeServers      Key = "home.servers"
	HomeServersNote  Key = "home.servers.note"
	HomeServerDown   Key = "home.server.down"
	HomeGrants       Key = "home.grants"
	HomeGrantsNone   Key = "home.grants.none"
	HomeAllowed      Key = "home.allowed" // tool
	HomeDenied       Key = "home.denied"  // tool
	HomeKeys         Key = "home.keys"
	HomeTokens       Key = "home.tokens"
	HomeTokenLine    Key = "home.token" // name, head, day
	HomeUsage        Key = "home.usage" // days
	HomePage         Key = "home.page"  // first, last, all, first name, last name
	HomeMore         Key = "home.more"  // how many, command
	PictureHere      Key = "picture.here"

	OwnAgentSet   Key = "own.agent"  // name
	OwnModelSet   Key = "own.model"  // name
	ServerOn      Key = "server.on"  // names
	ServerOff     Key = "server.off" // names
	ServersAll    Key = "servers.all"
	ServersChoose Key = "servers.choose"
	StateOff      Key = "server.state.off"
	StateOffHere  Key = "server.state.here"
	HereAll       Key = "servers.here.all"
	HereOnly      Key = "servers.here.only" // names

	StatePlanned   Key = "state.planned"
	StatePending   Key = "state.pending"
	StateApproved  Key = "state.approved"
	StateRunning   Key = "state.running"
	StateDone      Key = "state.done"
	StateFailed    Key = "state.failed"
	StateRefused   Key = "state.refused"
	StateExpired   Key = "state.expired"
	StateCancelled Key = "state.cancelled"
	StateLost      Key = "state.lost"
	StateBy        Key = "state.by" // state, name

	AnswerReady    Key = "turn.answer_ready" // an answer that took long is above
	TurnStopped    Key = "turn.stopped"
	TurnFailed     Key = "turn.failed"
	TurnUnsaid     Key = "turn.unsaid"
	TurnWaits      Key = "turn.waits" // how many may
	SecretMasked   Key = "secret.masked"
	AnswerAside    Key = "aside.answer"    // name
	AsideUnreached Key = "aside.unreached" // name
	AsideHead      Key = "aside.head"      // channel
	AsideLink      Key = "aside.link"
	PlaceShut      Key = "place.shut" // channel
	ShareOffer     Key = "share.offer"
	ShareOfferIn   Key = "share.offer.in" // channel
	ShareDone      Key = "share.done"
	ButtonShare    Key = "button.share"
	ButtonKeep     Key = "button.keep"
	ShareTitle     Key = "share.title"
	ShareConfirm   Key = "share.confirm" // channel
	SharedBy       Key = "share.by"      // name
	AboutForget    Key = "about.forget"
	ForgetAsk      Key = "forget.ask"
	ButtonForget   Key = "button.forget"
	ForgetDone     Key = "forget.done" // messages, calls
	ForgetBusy     Key = "forget.busy"
	ForgetNone     Key = "forget.none"
	ForgetNotYours Key = "forget.not_yours"
	ShareNotYours  Key = "share.not_yours"
	Cut            Key = "text.cut"

	ButtonRun         Key = "button.run"
	ButtonCancel      Key = "button.cancel"
	ButtonEdit        Key = "button.edit"
	ButtonAlways      Key = "button.always"
	ButtonNever       Key = "button.never"
	ButtonShowAll     Key = "button.show_all"
	ButtonShowResult  Key = "button.show_result"
	ButtonNext        Key = "button.next"
	ButtonClose       Key = "button.close"
	CardHead          Key = "card.head"
	CardHeadDone      Key = "card.head_done"
	CardContinues     Key = "card.continues" // characters shown, all of them, bytes, digest
	CardMore          Key = "card.more"
	CardFile          Key = "card.file"     // name of the file
	CardDialog        Key = "card.dialog"   // part, parts
	CardTooLong       Key = "card.too_long" // bytes
	CardBadJSON       Key = "card.bad_json" // problem
	CardCurlyQuotes   Key = "card.curly_quotes"
	CardBadField      Key = "card.bad_field" // want
	CardNotYou        Key = "card.not_you"
	CardNotHere       Key = "card.not_here"
	AlwaysHint        Key = "always.hint" // tool
	NeverHint         Key = "never.hint"  // tool
	AlwaysFor         Key = "always.for"
	AlwaysForMe       Key = "always.for_me"
	AlwaysForChannel  Key = "always.for_channel"
	AlwaysForEveryone Key = "always.for_everyone"
	AlwaysArgs        Key = "always.args"
	AlwaysArgsAny     Key = "always.args_any"
	AlwaysArgsThese   Key = "always.args_these"
	AlwaysPattern     Key = "always.pattern"
	AlwaysPatternHint Key = "always.pattern_hint"
	AlwaysUntil       Key = "always.until"
	AlwaysForEver     Key = "always.for_ever"
	AlwaysSpan        Key = "always.span" // span
	AlwaysKept        Key = "always.kept" // tool
	CardTold          Key = "card.told"   // problem
	CommandFailed     Key = "command.failed"
	DidYouMean        Key = "command.near" // name
	UnknownCommand    Key = "command.unknown"
	HelpHead          Key = "help.head"
	HelpFoot          Key = "help.foot"
	AboutHelp         Key = "about.help"
	AboutStop         Key = "about.stop"
	AboutMute         Key = "about.mute"
	AboutUnmute       Key = "about.unmute"
	AboutApprove      Key = "about.approve"
	AboutDeny         Key = "about.deny"
	AboutClaim        Key = "about.claim"
	NothingHere       Key = "thread.none"
	NothingRuns       Key = "thread.idle"
	Stopping          Key = "thread.stopping"
	Muted             Key = "thread.muted"
	Unmuted           Key = "thread.unmuted"
	CallIs            Key = "call.is" // tool, state
	Claimed           Key = "claim.done"
	ClaimWrong        Key = "claim.wrong"
	NoAccess          Key = "access.none"
	Barred            Key = "access.barred"
	FirstContact      Key = "access.first" // days
	WhatToDo          Key = "message.empty"
	TooLong           Key = "message.long"
	Working           Key = "working" // after nize's name
	ToolCalling       Key = "tool.calling"
	LookupSearch      Key = "lookup.search"
	LookupUse         Key = "lookup.use"
	LookupAll         Key = "lookup.all"
	TooMany           Key = "message.many" // messages, span, wait
	ResultTitle       Key = "result.title"
	ResultSent        Key = "result.sent"
	ButtonAsFile      Key = "button.as_file"
	ResultNone        Key = "result.none"
	CardEditTitle     Key = "card.edit_title"
	CardAllTitle      Key = "card.all_title"
	CardEditRun       Key = "card.edit_run"
	CardEditHint      Key = "card.edit_hint" // tool
	CardArgumentsJSON Key = "card.arguments_json"
	CardClipped       Key = "card.clipped" // all, shown
	CardNoFile        Key = "card.no_file"
	WantText          Key = "want.text"
	WantNumber        Key = "want.number"
	WantWhole         Key = "want.whole"
	WantNeeded        Key = "want.needed"
	ButtonRunAll      Key = "button.run_all" // how many
	ButtonRetry       Key = "button.retry"
	ButtonAgain       Key = "button.again"
	AlertOpen         Key = "alert.open" // title
	AlertOver         Key = "alert.over" // title
	AlertCure         Key = "alert.cure" // command

	AboutAsk          Key = "about.ask"
	AsksHere          Key = "ask.here"    // name, question
	OnlyDialog        Key = "dialog.only" // command
	DialogLate        Key = "dialog.late"
	DialogTitle       Key = "dialog.title"
	AboutTools        Key = "about.tools"
	AboutServers      Key = "about.servers"
	AboutAgent        Key = "about.agent"
	AboutModel        Key = "about.model"
	AboutUsage        Key = "about.usage"
	AboutApprovals    Key = "about.approvals"
	AboutSettings     Key = "about.settings"
	AboutConnect      Key = "about.connect"
	AboutLink         Key = "about.link"
	AboutTokens       Key = "about.tokens"
	AboutPrivacy      Key = "about.privacy"
	ToolsNone         Key = "tools.none" // query
	ToolsWhat         Key = "tools.what"
	ServersNone       Key = "servers.none"
	ServerLine        Key = "servers.line" // name, state, tools
	Current           Key = "list.current"
	AgentsNone        Key = "agents.none"
	ModelsNone        Key = "models.none"
	ChooseIt          Key = "list.choose" // command
	AgentSet          Key = "agent.set"   // name
	ModelSet          Key = "model.set"   // name
	NotYours          Key = "thread.not_yours"
	TheDefault        Key = "list.default"
	UsageNone         Key = "usage.none"       // days
	UsageHead         Key = "usage.head"       // days
	UsageLine         Key = "usage.line"       // tokens, calls
	UsageCost         Key = "usage.cost"       // money
	UsageBudget       Key = "usage.budget"     // subject, used, limit, when
	UsageOwnBudget    Key = "usage.budget.own" // used, limit, when
	ApprovalsNone     Key = "approvals.none"
	ApprovalsHead     Key = "approvals.head"
	ApprovalLine      Key = "approvals.line" // id, tool, who asked
	AndMore           Key = "list.more"      // how many
	SettingsHead      Key = "settings.head"
	SettingLine       Key = "settings.line" // name, value
	SettingSet        Key = "settings.set"  // name, value
	ValueNone         Key = "settings.none"
	ConnectHead       Key = "connect.head" // address
	ConnectNoURL      Key = "connect.no_url"
	ConnectToken      Key = "connect.token"
	ButtonToken       Key = "button.token"
	TokenMade         Key = "token.made" // name, date, token
	TokensNone        Key = "tokens.none"
	TokensHead        Key = "tokens.head"
	TokenLine         Key = "tokens.line"   // name, beginning, state, expiry
	TokenRevoked      Key = "token.revoked" // name
	LinkCode          Key = "link.code"     // minutes, code, code
	LinkOpen          Key = "link.open"
	LinkAsk           Key = "link.ask" // other's name, identities, your name
	ButtonJoin        Key = "button.join"
	LinkDone          Key = "link.done"    // identities
	PrivacyText       Key = "privacy.text" // conversations, output, audit, usage
	AboutChannel      Key = "about.channel"
	ChannelNone       Key = "channel.none"
	ChannelHead       Key = "channel.head"
	ChannelNotYours   Key = "channel.not_yours"
	ChannelSet        Key = "channel.set" // name, value
	StateOffChannel   Key = "server.off_channel"
	ChannelTitle      Key = "channel.title"
	ChannelAbout      Key = "channel.about"   // place
	ChannelNoServer   Key = "channel.nothing" // no server
	ChannelMore       Key = "channel.more"    // how many others
	ChannelOver       Key = "channel.over"
	ChannelOverAll    Key = "channel.over_all"
	ChannelUsage      Key = "channel.usage"
	ChannelHints      Key = "channel.hint.approvers"
	ChannelHintAdmins Key = "channel.hint.admins"
	ChannelHintServer Key = "channel.hint.servers"
	ChannelFollow     Key = "channel.follow"
	ChannelMention    Key = "channel.mention"
	ChannelAll        Key = "channel.all"
	ChannelStarter    Key = "channel.starter"
	ButtonSave        Key = "button.save"

	FilesUnread  Key = "files.unread" // files, each as FileUnread
	FileUnread   Key = "file.unread"  // name, why
	FileTooLarge Key = "file.large"   // MiB
	FileTooMany  Key = "file.many"    // how many are read
	FileOther    Key = "file.other"
	FileGone     Key = "file.gone"
	FileForeign  Key = "file.foreign"
	FileDenied   Key = "file.denied"
	FileFailed   Key = "file.failed"
	FileNoRoom   Key = "file.room"

	AboutMessageTitle Key = "shortcut.title"
	AboutMessageLabel Key = "shortcut.label"
	ButtonAsk         Key = "button.ask"
	AboutMessageText  Key = "shortcut.text" // question, author, message
	GrantAllow        Key = "grant.allow"   // id, tool
	GrantDeny         Key = "grant.deny"    // id, tool
	GrantsHead        Key = "grants.head"
	GrantInChannel    Key = "grant.in_channel"
	GrantOnly         Key = "grant.only"    // pattern
	GrantUntil        Key = "grant.until"   // time
	GrantRevoked      Key = "grant.revoked" // tool
	StateConnected    Key = "server.ok"
	StateNotConnected Key = "server.down"
)

// Catalogue is one language.
type Catalogue map[Key]string

// catalogues by lower-case tag: a language, or a language with a script. The
// regions are those that CLDR writes in traditional Chinese by itself.
var catalogues = map[string]Catalogue{
	"en":      english,
	"zh":      simplified,
	"zh-hans": simplified,
	"zh-hant": traditional,
	"zh-tw":   traditional,
	"zh-hk":   traditional,
	"zh-mo":   traditional,
}

// For returns the catalogue for a BCP 47 locale: the tag itself, then the tag
// without its last part, and so on; English where nothing fits. A POSIX locale
// (zh_TW.UTF-8) is read too: its character set and modifier say nothing here.
func For(locale string) Catalogue {
	if cut := strings.IndexAny(locale, ".@"); cut >= 0 {
		locale = locale[:cut]
	}
	tag := strings.ToLower(strings.ReplaceAll(locale, "_", "-"))
	for tag != "" {
		if c, ok := catalogues[tag]; ok {
			return c
		}
		cut := strings.LastIndexByte(tag, '-')
		if cut < 0 {
			break
		}
		tag = tag[:cut]
	}
	return english
}

// Say returns the sentence with its arguments in place.
func (c Catalogue) Say(key Key, args ...any) string {
	text, ok := c[key]
	if !ok {
		text = english[key]
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}
