package index

// Signal is one reason for a tool's place in the ranking.
type Signal string

// The signals. Words alone is BM25F; each other one is a function below.
const (
	Words    Signal = "words"    // BM25F over the request's own words
	Values   Signal = "values"   // less weight for quoted and machine-made words
	Synonyms Signal = "synonyms" // other words for the same thing
	Spelling Signal = "spelling" // mended typos
	Name     Signal = "name"     // the share of the tool's name that the request says
	Coverage Signal = "coverage" // the share of the request that the tool says
	Server   Signal = "server"   // the share of the request that its server says
	Action   Signal = "action"   // create, read, update, delete, send or run
	Vector   Signal = "vector"   // cosine of the vectors
)

// Signals lists those that can be left out.
var Signals = []Signal{Values, Synonyms, Spelling, Name, Coverage, Server, Action, Vector}

// weights is everything that was measured; eval prints what each is worth.
type weights struct {
	fields   fieldWeights
	idfPower float64 // below 1: a rare word outweighs common ones less than idf says
	value    float64 // of a word inside a literal
	synonym  float64
	joined   float64 // of two words written as one
	mended   float64 // of a corrected word
	chinese  float64 // of the English word for a Chinese one
	name     float64
	coverage float64
	server   float64
	action   float64
	vector   float64
}

var tuned = weights{
	fields: fieldWeights{
		inName:        {1.5, 0.75, 3},
		inServer:      {3, 0, 2},
		inFirst:       {0.5, 0.75, 9},
		inDescription: {0.5, 0.75, 20},
		inParam:       {1, 0.9, 6},
		inParamText:   {1, 0.9, 35},
	},
	idfPower: 0.8,
	value:    0.5,
	synonym:  0.3,
	joined:   0.6,
	mended:   0.6,
	chinese:  0.8,
	name:     0.5,
	coverage: 0.4,
	server:   0.2,
	action:   0.15,
	vector:   0.15,
}

// leaveOut takes one signal out of the ranking.
func (w *weights) leaveOut(s Signal) {
	switch s {
	case Values:
		w.value = 1
	case Synonyms:
		w.synonym = 0
	case Spelling:
		w.mended = 0
	case Name:
		w.name = 0
	case Coverage:
		w.coverage = 0
	case Server:
		w.server = 0
	case Action:
		w.action = 0
	case Vector:
		w.vector = 0
	}
}
