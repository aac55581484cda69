package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// effect says what a setting does in Quorate.
type effect int

const (
	inEffect effect = iota // it has the effect that the help describes
	idle                   // accepted so that etcd's command lines work; has no effect here, and a warning says so
	refuse                 // anything but the default is an error, because ignoring it would break a promise
)

// setting is one row of the table from which flags, variables, file keys and help are made.
type setting struct {
	name   string
	def    string // text of the default
	shown  string // how the help shows the default, if not as def
	arg    string // placeholder of the value in the help; empty for switches
	effect effect
	help   string
	secret bool   // it is not shown
	filled bool   // an empty text on a command line is a mistake, such as a variable of a shell that is not set
	reason string // refuse: why; idle: what Quorate does instead
	value  value
}

// value gives access to what a setting sets.
type value interface {
	set(c *Config, text string) error
	check(text string) (normal string, err error) // as set, without keeping it
	text(c *Config) string
	yaml(c *Config) any // the form in which the configuration file holds it
	isSwitch() bool
}

// field is a value in a field of Config.
type field[T any] struct {
	at     func(*Config) *T
	parse  func(string) (T, error)
	format func(T) string
	plain  func(T) any
}

func (f field[T]) set(c *Config, text string) error {
	v, err := f.parse(text)
	if err == nil {
		*f.at(c) = v
	}
	return err
}

func (f field[T]) check(text string) (string, error) {
	v, err := f.parse(text)
	if err != nil {
		return "", err
	}
	return f.format(v), nil
}

func (f field[T]) text(c *Config) string { return f.format(*f.at(c)) }

func (f field[T]) yaml(c *Config) any {
	if f.plain != nil {
		return f.plain(*f.at(c))
	}
	return f.format(*f.at(c))
}

func (f field[T]) isSwitch() bool {
	_, is := any(f.at).(func(*Config) *bool)
	return is
}

// named is a value that Quorate checks and stores under its name, and nothing reads.
type named struct {
	key    string
	sample value // checks the text; nil for any text
}

func (n named) set(c *Config, text string) error {
	normal, err := n.check(text)
	if err == nil {
		c.compat[n.key] = normal
	}
	return err
}

func (n named) check(text string) (string, error) {
	if n.sample == nil || text == "" {
		return text, nil
	}
	return n.sample.check(text)
}

func (n named) text(c *Config) string { return c.compat[n.key] }
func (n named) yaml(c *Config) any    { return c.compat[n.key] }
func (n named) isSwitch() bool        { return n.sample != nil && n.sample.isSwitch() }

var (
	errNegative     = errors.New("must not be negative")
	errNotRetention = errors.New(`must be a number of hours or a duration such as "5m" (periodic), ` +
		`or a number of revisions (revision)`)
	errNotSwitch   = errors.New("must be true or false")
	errNotNumber   = errors.New("must be a whole number")
	errNotDuration = errors.New(`must be a duration such as "100ms", "5s" or "1h"`)
)

func texts(at func(*Config) *string) value {
	return field[string]{at, func(s string) (string, error) { return s, nil }, func(s string) string { return s }, nil}
}

func switches(at func(*Config) *bool) value {
	parse := func(s string) (bool, error) {
		v, err := strconv.ParseBool(s)
		if err != nil {
			return false, errNotSwitch
		}
		return v, nil
	}
	return field[bool]{at, parse, strconv.FormatBool, func(v bool) any { return v }}
}

// numbers holds a whole number from low to high; like Go's and etcd's flags it also reads 0x10 and 1_000.
func numbers[T ~int | ~int64 | ~uint32](at func(*Config) *T, low, high int64) value {
	parse := func(s string) (T, error) {
		n, err := strconv.ParseInt(s, 0, 64)
		switch {
		case err != nil && errors.Is(err, strconv.ErrRange):
			return 0, errors.New("is too large")
		case err != nil:
			return 0, errNotNumber
		case n < low && low == 0:
			return 0, errNegative
		case n < low:
			return 0, fmt.Errorf("must be at least %d", low)
		case n > high:
			return 0, fmt.Errorf("must be at most %d", high)
		}
		return T(n), nil
	}
	format := func(v T) string { return strconv.FormatInt(int64(v), 10) }
	return field[T]{at, parse, format, func(v T) any { return int64(v) }}
}

func durations(at func(*Config) *time.Duration) value {
	parse := func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return 0, errNotDuration
		case d < 0:
			return 0, errNegative
		}
		return d, nil
	}
	return field[time.Duration]{at, parse, time.Duration.String, nil}
}

// counted holds a duration that etcd writes as a bare number of units; a duration with its unit is also understood.
func counted(at func(*Config) *time.Duration, unit time.Duration) value {
	parse := func(s string) (time.Duration, error) {
		if n, err := strconv.ParseInt(s, 0, 64); err == nil {
			if n < 0 {
				return 0, errNegative
			}
			if n > int64(1000*time.Hour/unit) {
				return 0, errors.New("is too large")
			}
			return time.Duration(n) * unit, nil
		}
		d, err := time.ParseDuration(s)
		switch {
		case err != nil && unit == time.Millisecond:
			return 0, errors.New(`must be a number of milliseconds, or a duration such as "100ms"`)
		case err != nil:
			return 0, errors.New(`must be a number of seconds, or a duration such as "5m"`)
		case d < 0:
			return 0, errNegative
		}
		return d.Round(unit), nil
	}
	format := func(d time.Duration) string { return strconv.FormatInt(int64(d/unit), 10) }
	return field[time.Duration]{at, parse, format, func(d time.Duration) any { return int64(d / unit) }}
}

func choices[T ~string](at func(*Config) *T, allowed ...T) value {
	parse := func(s string) (T, error) {
		if slices.Contains(allowed, T(s)) {
			return T(s), nil
		}
		var all []string
		for _, a := range allowed {
			all = append(all, string(a))
		}
		return "", fmt.Errorf("invalid value %q, choose one of %s", s, strings.Join(all, ", "))
	}
	return field[T]{at, parse, func(v T) string { return string(v) }, nil}
}

// lists holds comma-separated words; blanks around them and empty words are dropped.
func lists(at func(*Config) *[]string) value {
	parse := func(s string) ([]string, error) {
		var out []string
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" && !slices.Contains(out, part) {
				out = append(out, part)
			}
		}
		return out, nil
	}
	return field[[]string]{at, parse, func(v []string) string { return strings.Join(v, ",") }, nil}
}

func urls(at func(*Config) *[]URL) value {
	return field[[]URL]{at, ParseURLs, joinURLs, nil}
}
