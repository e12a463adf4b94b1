package slack

import "regexp"

var (
	idForm    = regexp.MustCompile(`^[A-Z0-9]{1,32}$`)
	stampForm = regexp.MustCompile(`^[0-9]{1,12}\.[0-9]{1,9}$`)
	wordForm  = regexp.MustCompile(`^[A-Za-z0-9_./:|-]{1,255}$`)
)
