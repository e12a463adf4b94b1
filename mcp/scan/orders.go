package scan

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"nize/store"
)

// An order is a phrase that instructs the model and bypasses the person. Each is matched
// against folded text (see fold): lower case, single spaces, look-alike letters replaced
// with ASCII, hidden characters removed. None of them matches any of 5,000 real definitions
// on which this was measured. "you must call X first" and "IMPORTANT:" do match some, so
// they are not included.
var forms = []struct {
	what string
	any  []string // words of which every match contains at least one; if none occurs, the expression is not run
	re   func() *regexp.Regexp
}{
	{"tells the model to drop its instructions", anyOf("ignore disregard forget override bypass discard"), compiled(
		`\b(ignore|disregard|forget|override|bypass|discard)\b[^.\n]{0,30}\b(previous|prior|above|earlier|preceding|existing|original|system|safety|other|all|any|your)\b[^.\n]{0,20}\b(instructions?|prompts?|guidelines|directives?|guardrails|safety rules|system rules)\b`)},
	{"tells the model to drop its instructions", anyOf("忽略 vergiss ignor"), compiled(
		`忽略(之前|以上|先前|上述|前面)[^。\n]{0,8}(指令|指示|说明|提示|命令)|(vergiss|ignoriere)[^.\n]{0,20}(anweisungen|instruktionen)|ignor(a|e|ez)[^.\n]{0,24}(instrucciones|instructions) (anteriores|précédentes|previas)`)},
	{"carries a tag addressed to the model", anyOf("<"), compiled(
		`</? ?(important|system[-_ ](prompt|message|note|override)|sudo|critical|im_start|tool_?(call|result)s?|function_?calls?)( [a-z_]+="[^"]*")? ?>|<(system|secret|hidden|instructions?|assistant|admin|override|developer|note|rules?)>[^<>]{20,900}(</|$)`)},
	{"carries a model's control token", anyOf("<| inst] sys>> turn> [system] ### system: assistant: system_: assistant_:"), compiled(
		`<\|[a-z_]{2,24}\|>|\[/?inst\]|<</?sys>>|<(start|end)_of_turn>|\[system\]\s*\(|###\s*(system|instruction)s?\s*:|(^|[.!] )(system|assistant) ?: you\b`)},
	{"tells the model to keep something from the person", anyOf("tell inform alert notify mention reveal disclos warn"), compiled(
		`\b(do not|don't|dont|never|must not|mustn't|should not|shouldn't|without|avoid|refrain from)\b[^.\n]{0,24}\b(tell|telling|inform|informing|alert|alerting|notify|notifying|mention|mentioning|reveal|revealing|disclose|disclosing|warn|warning)\b[^.\n]{0,40}\b(user|users|human|person|operator|anyone|anybody|customer)\b`)},
	{"tells the model to keep something from the person", anyOf("hide conceal keep 用户"), compiled(
		`\b(hide|conceal|keep)\b[^.\n]{0,30}\b(from|secret from|hidden from)\b[^.\n]{0,6}\b(user|users|human|operator)\b|(不要|别|请勿|切勿)(告诉|告知|通知|提醒|提及)[^。\n]{0,4}用户`)},
	{"tells the model to keep something from the person", anyOf("silently secretly covertly quietly discreetly"), compiled(
		`\b(silently|secretly|covertly|quietly|discreetly)\b[^.\n]{0,30}\b(call|read|send|append|include|forward|upload|copy|attach|add|pass|post|run|execute|bcc)\b`)},
	{"asks the model to read keys or credentials", anyOf("~/. rsa ed25519 ecdsa /etc/ .aws/ .cursor/ claude ssh keychain wallet seed_phrase"), compiled(
		`\b(read|open|cat|load|fetch|get|access|include|send|pass|provide|paste|dump|print|copy|upload|attach|contents? of|retrieve|look (at|in|into))\b[^\n]{0,60}(~/\.(ssh|aws|gnupg|netrc|kube|docker|config/gcloud|cursor|claude|npmrc|git-credentials|bash_history|zsh_history)|\bid_(rsa|ed25519|ecdsa)\b|/etc/(passwd|shadow|sudoers)|\.aws/credentials|\.cursor/mcp\.json|claude_desktop_config\.json|\bprivate ssh key|\bssh private key|keychain|wallet\.dat|\bseed phrase)`)},
	{"asks the model for its own context", anyOf("prompt message instructions history transcript log name"), compiled(
		`\b(include|pass|send|provide|put|append|copy|reveal|print|repeat|output|paste|leak|forward|dump|attach)\b[^.\n]{0,40}\b(your |the )?(full |entire |whole |complete |current |verbatim )*(system prompt|system message|developer message|hidden instructions|initial instructions|(conversation|chat|message) (history|transcript|log)s? (verbatim|in full|so far)|(entire|full|whole|complete) (conversation|chat|message) (history|transcript|log)s?|names? of (all|every) (other )?tools?)\b`)},
	{"gives the model another role", anyOf("you_are_now enter enable activate switch_to new_instruction new_system new_directive new_rule new_objective new_goal"), compiled(
		`\byou are now (a|an|in|the|no longer|acting|operating|unrestricted|free)\b|\b(enter|enable|activate|switch to) (developer|god|jailbreak|dan|unrestricted|debug admin) mode\b|\bnew (system )?(instructions?|directives?|rules?) (for|to) (the )?(assistant|model|ai|agent|llm)\b|\b(your|the) new (instructions?|directive|objective|goal) (is|are)\b|\bnew instructions:`)},
	{"tells the model to act without asking", anyOf("user human person operator"), compiled(
		`\b(do not|don't|never|no need to|without)\b[^.\n]{0,16}\b(ask|asking|request|requesting|wait|waiting)\b[^.\n]{0,16}\b(for )?(the |any )?(user|human|person|user's|operator)('s)?\b[^.\n]{0,16}\b(permission|approval|consent|confirmation|confirm)\b|\bthe (user|human|operator) has (already|pre-?)[ -]?(approved|authori[sz]ed|consented)`)},
	{"tells the model where to send what it learns", anyOf("http @ attacker +"), compiled(
		`\b(send|forward|post|upload|exfiltrate|transmit|bcc|cc|copy|report|leak|mail|email)\b[^.\n]{0,20}\b(all|every|any|each|its|their|the (contents?|results?|output|response|conversation|data|file|message|password|credentials?|keys?|tokens?|secrets?)|a copy)\b[^\n]{0,50}\b(to|at|with) (https?://|[a-z0-9._+-]+@[a-z0-9-]+\.|attacker|\+[0-9]{6})`)},
	{"changes how other tools are used", anyOf("tool"), compiled(
		`\b(when|whenever|every time|each time|before|after|if)\b[^.\n]{0,30}\b(any|every|all|another|other|each)( of the)?( other)? tools?\b[^.\n]{0,60}\b(you must|must (first|also|always|instead)|always (call|use|send|pass|add|set|change|include)|(instead|first) (call|use)|change the|replace the|set the (recipient|address|url|path))\b`)},
	{"carries an order in a comment", anyOf("<!--"), compiled(
		`<!--[^>]{0,400}\b(you must|must|ignore|do not|don't|never|always|assistant|model|ai|agent|llm|instruction)\b`)},
}

// compiled returns a function that compiles the expression on first use. Most expressions
// are never used, and compiling all of them takes longer than anything else before main.
func compiled(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// orders returns the forms that t matches, each once, with the matching words.
func orders(t text) []string {
	if len(t.value) < 8 {
		return nil
	}
	value := store.Clip(t.value, maxText)
	found, known := lately.get(value)
	if !known {
		found = match(fold(value))
		lately.put(value, found)
	}
	out := make([]string, len(found))
	for i, f := range found {
		out[i] = t.where() + ": " + f
	}
	return out
}

func match(folded string) []string {
	var found []string
	seen := map[string]bool{}
	for _, f := range forms {
		if seen[f.what] || !holdsAny(folded, f.any) {
			continue
		}
		if m := f.re().FindString(folded); m != "" {
			seen[f.what] = true
			found = append(found, fmt.Sprintf("%s (%q)", f.what, store.Clip(strings.TrimSpace(m), 90)))
		}
	}
	return found
}

// memory caches the results for the last long texts. It doesn't affect the results. A
// server's instructions are part of each of its tools, and with 2,000 tools they would be
// scanned 2,000 times.
type memory struct {
	mu    sync.Mutex // guards found
	found map[[sha256.Size]byte][]string
}

var lately memory

// Limits of the cache: number of texts, and the minimum length for which it pays.
const (
	maxKept  = 64
	longText = 512
)

func (m *memory) get(s string) (found []string, known bool) {
	if len(s) < longText {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found, known = m.found[sha256.Sum256([]byte(s))]
	return found, known
}

func (m *memory) put(s string, found []string) {
	if len(s) < longText {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.found == nil || len(m.found) >= maxKept {
		m.found = map[[sha256.Size]byte][]string{}
	}
	m.found[sha256.Sum256([]byte(s))] = found
}

// anyOf splits words; _ stands for a space.
func anyOf(words string) []string {
	list := strings.Fields(words)
	for i, w := range list {
		list[i] = strings.ReplaceAll(w, "_", " ")
	}
	return list
}

func holdsAny(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

// fold normalizes text for the search for orders. A newline counts as a space, so that
// writing one word per line hides nothing.
func fold(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	space := true
	for _, r := range s {
		if c := classOf(r); c != plain && c != separator {
			if c == control || c == ansi {
				r = ' '
			} else {
				continue // invisible: may be inserted between the letters of a word
			}
		}
		if unicode.IsSpace(r) {
			if !space {
				out.WriteByte(' ')
			}
			space = true
			continue
		}
		space = false
		if r == '’' || r == '‘' {
			r = '\''
		}
		if ascii, ok := lookalike(r); ok {
			r = ascii
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
