package llm

import "nize/store"

// tokenBytes is the average number of bytes per token, over English prose, JSON and code.
const tokenBytes = 3.6

// EstimateTokens estimates the tokens of n bytes of text, for services that send no usage
// and for the context budget.
func EstimateTokens(n int) int64 { return int64(float64(n)/tokenBytes) + 1 }

// EstimateUsage returns the estimated usage of a round, marked as such.
func EstimateUsage(req Request, reply Reply) Usage {
	out := len(reply.Text)
	for _, c := range reply.Calls {
		out += len(c.Name) + len(c.Args)
	}
	return Usage{Prompt: EstimateTokens(promptBytes(req)), Completion: EstimateTokens(out), Estimated: true}
}

// promptBytes returns the size of a request.
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

// requestTokens estimates the tokens of a request's prompt.
func requestTokens(req Request) int64 { return EstimateTokens(promptBytes(req)) }

// bytesOf returns the number of bytes of that many tokens.
func bytesOf(tokens int) int { return int(float64(tokens) * tokenBytes) }

// turnBytes returns the size of a turn in a request.
func turnBytes(t store.Turn) int {
	n := len(t.Text) + len(t.Opaque) + attachmentBytes(t)
	for _, c := range t.Calls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}
