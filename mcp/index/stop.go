package index

import "strings"

// stop contains words that don't help to identify a tool: function words of English, and
// polite phrases around a request.
var stop = func() map[string]struct{} {
	m := make(map[string]struct{})
	for w := range strings.FieldsSeq(`
a an the this that these those there here it its itself he she they them their his her him our ours us we i me my mine you your yours
and or but nor so yet if then else than as of in on at by for from to into onto with without within via per about over under between
is are was were be been being am do does did doing done has have had having can could will would shall should may might must
not no don doesn didn isn aren wasn weren won wouldn couldn shouldn haven hasn hadn ain ll ve re
what which who whom whose when where why how
please kindly help need want like wish hope let lets hey hi hello thanks thank ok okay
im ive just also too very really quite some any each every both either neither such same other another
able possible possibly maybe perhaps try trying provide tell know give using use used make sure
something anything everything someone anyone thing things way
up out off down again once only own more most much many few
because while during before after until since
`) {
		m[w] = struct{}{}
	}
	return m
}()

func isStop(w string) bool {
	_, ok := stop[w]
	return ok
}
