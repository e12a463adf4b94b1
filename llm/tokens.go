package llm

import "nize/store"

// tokenBytes is how many bytes of text make one token, as a rule of thumb over
// English prose, JSON and code.
const tokenBytes = 3.6

// EstimateTokens guesses the tokens of n bytes of text, for services that send
// no usage and for the context budget.
func EstimateTokens(n int) int64 { return int64(float64(n)/tokenBytes) + 1 }

// EstimateUsage is the guessed usage of a round, marked as such.
func EstimateUsage(req Request, reply Reply) Usage {
	out := len(reply.Text)
	for _, c := range reply.Calls {
		out += len(c.Name) + len(c.Args)
	}
	return Usage{Prompt: EstimateTokens(promptBytes(req)), Completion: EstimateTokens(out), Estimated: true}
}

// promptBytes is what a request weighs.
func promptBytes(req Request) int {
	n := len(req.System) + len(req.Context)
	for _, f := range req.Functions {
		n += len(f.Name) + len(f.Description) + len(f.Schema)
	}
	for _, t := range req.Turns {
		n += turnBytes(t)
	}
	return n
}

// requestTokens estimates the prompt of a request.
func requestTokens(req Request) int64 { return EstimateTokens(promptBytes(req)) }

// bytesOf is how many bytes so many tokens are.
func bytesOf(tokens int) int { return int(float64(tokens) * tokenBytes) }

// turnBytes is what a turn weighs in a request.
func turnBytes(t store.Turn) int {
	n := len(t.Text) + len(t.Opaque) + attachmentBytes(t)
	for _, c := range t.Calls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}
