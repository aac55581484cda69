package v1alpha1

import "regexp"

// QuantityPattern is that of all amounts in the CRDs. Kubernetes' own takes texts that cannot be decoded, such as 1e1.5, and
// others that take for ever, such as 1e400000000; `make operator-api` puts this one in its place.
const QuantityPattern = `^([0-9]{1,18}([.][0-9]{0,9})?|[.][0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?$`

var quantity = regexp.MustCompile(QuantityPattern)

// IsQuantity tells whether a text is an amount of Kubernetes that is soon decoded.
func IsQuantity(text string) bool { return quantity.MatchString(text) }
