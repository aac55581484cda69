package level

import "errors"

// ErrLater means that a later build wrote what was to be decoded: this build does not know its number, its kind, or a value in
// it. That is no damage, and no decoder passes over it. docs/formats.md has the rule for all forms.
var ErrLater = errors.New("a later build wrote this: start that build, or one after it")

// Later returns an error with a text of its own for which errors.Is(err, ErrLater) holds.
func Later(text string) error { return &laterError{text} }

type laterError struct{ text string }

func (e *laterError) Error() string { return e.text }

func (e *laterError) Is(target error) bool { return target == ErrLater }
