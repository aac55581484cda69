package command

import (
	"strconv"
	"strings"
	"time"
)

// WhenHelp says how a time is written on a command line.
const WhenHelp = "a time such as 2026-11-30T12:03:10Z, '2026-11-30 12:03:10' (UTC), or 15m (ago)"

// When reads a time that is not in the future.
func When(text string, now time.Time) (time.Time, error) {
	at, isTime := ReadTime(text, now)
	switch {
	case !isTime:
		return time.Time{}, Usagef("%q is no time: write %s", text, WhenHelp)
	case at.After(now):
		return at, Usagef("%q is in the future: this host's clock shows %s", text, now.UTC().Format(time.RFC3339))
	case at.UnixMilli() < 0:
		return at, Usagef("%q is before 1970", text)
	}
	return at, nil
}

// ReadTime reads any time, one in the future or before 1970, too; false: the text is none.
func ReadTime(text string, now time.Time) (at time.Time, isTime bool) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), true
	}
	for _, layout := range [...]string{time.RFC3339Nano, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04",
		"2006-01-02T15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// RevisionOrTime reads a revision, which is a number, or a time; the other one is zero.
func RevisionOrTime(text string, now time.Time) (revision int64, at time.Time, err error) {
	if text != "" && strings.Trim(text, "-0123456789") == "" {
		if revision, err = strconv.ParseInt(text, 10, 64); err == nil && revision > 0 {
			return revision, at, nil
		}
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return 0, at, Usagef("%q is no revision: write a positive number, or %s", text, WhenHelp)
		}
	}
	at, err = When(text, now)
	return 0, at, err
}
