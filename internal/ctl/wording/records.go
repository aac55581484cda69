package wording

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/base/plural"
)

// RecordAbout says what a record of a call is about: its method, where an operation has several; its keys, or what else it
// names. Keys that are no text are in quotes.
func RecordAbout(e *audit.Entry) string {
	method, about := recordMethod(e), recordNames(e)
	if method != "" && about != "" {
		method += ": "
	}
	return method + about
}

// single are the operations that one method makes, or methods that do the same.
var single = []audit.Op{audit.OpRange, audit.OpPut, audit.OpDelete, audit.OpTxn, audit.OpCompact, audit.OpLogin}

// recordMethod is the method of a call as SERVICE/METHOD, if the operation does not say it.
func recordMethod(e *audit.Entry) string {
	if op, _ := audit.ParseOp(e.Op); slices.Contains(single, op) {
		return ""
	}
	method := strings.TrimPrefix(e.Method, "/")
	return method[strings.LastIndexByte(method[:max(0, strings.IndexByte(method, '/'))], '.')+1:]
}

func recordNames(e *audit.Entry) string {
	text := recordKeys(&e.EntryKeys)
	for i := range e.Parts {
		if i > 0 {
			text += ", "
		}
		if i == mostParts {
			text += fmt.Sprintf("and %d more", len(e.Parts)+e.Left-i)
			break
		}
		text += e.Parts[i].What + " " + recordKeys(&e.Parts[i].EntryKeys)
	}
	if e.About != "" && text != "" {
		text += "; "
	}
	return text + e.About
}

// mostParts is how many parts of a transaction a line names.
const mostParts = 4

func recordKeys(k *audit.EntryKeys) string {
	key := func(text string, bytes []byte) string {
		if len(bytes) > 0 {
			return strconv.Quote(string(bytes))
		}
		return text
	}
	from, to := key(k.Key, k.KeyBase64), key(k.End, k.EndBase64)
	switch {
	case k.KeyHash != "":
		from = "hash " + k.KeyHash
	case k.KeyPrefix != "":
		from, to = k.KeyPrefix+"…", cmp.Or(to, k.EndPrefix)
	}
	switch {
	case k.To != "":
		return "from " + from + " on"
	case to != "":
		return from + " to before " + to
	}
	return from
}

// RecordOutcome says how a call ended; of a write of a native client, whether this record is of another attempt than the first.
func RecordOutcome(e *audit.Entry) string {
	switch {
	case e.Event != "":
		return ""
	case e.Decision != "allowed" && e.Code != "":
		return e.Decision + ", " + e.Code
	case e.Code != "":
		return e.Code
	case e.Attempt == audit.AttemptWitness:
		return "held as a witness"
	case e.Attempt == audit.AttemptRepeat:
		return "allowed, sent again"
	}
	return cmp.Or(e.Decision, "allowed")
}

// RecordEvent says what a record tells that is of no call; empty: it is of a call.
func RecordEvent(e *audit.Entry) string {
	switch e.Event {
	case "":
		return ""
	case audit.EventLost:
		return plural.Of(e.Count, "record") + plural.Word(e.Count, " is", " are") + " missing here: " + e.Why
	case audit.EventEnds:
		return "the process ended in good order"
	case audit.EventFile:
		if why, ok := fileWords[e.Why]; ok {
			return why
		}
	}
	return e.Event + " " + e.Why
}

// fileWords say why a file of records begins, by the reason in its first record.
var fileWords = map[string]string{audit.Begins: "a file of records begins",
	audit.Resumes: "the process started, and goes on in this file", audit.Rotated: "the file before this one was full",
	audit.Deleted:  "the file before this one was removed while it was written to",
	audit.Replaced: "another file had taken the place of the one before", audit.Cut: "the file before this one was cut"}
