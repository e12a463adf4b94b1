package incoming

import "regexp"

var (
	IDForm    = regexp.MustCompile(`^[A-Z0-9]{1,32}$`)
	StampForm = regexp.MustCompile(`^[0-9]{1,12}\.[0-9]{1,9}$`)
	WordForm  = regexp.MustCompile(`^[A-Za-z0-9_./:|-]{1,255}$`)
)
