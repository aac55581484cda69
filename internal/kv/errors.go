package kv

import "errors"

// Rejections: deterministic, part of a Result, the same on every member. rpc maps each to etcd's code and text.
// The order is part of the on-disk format of results (codec.go): append only.
var (
	ErrCompacted      = errors.New("kv: revision has been compacted")
	ErrFutureRevision = errors.New("kv: revision is in the future")
	ErrKeyNotFound    = errors.New("kv: key not found") // ignore_value or ignore_lease on a missing key
	ErrLeaseNotFound  = errors.New("kv: lease not found")
	ErrLeaseExists    = errors.New("kv: lease already exists")
	ErrLeaseTTLTooBig = errors.New("kv: lease TTL too large")
	ErrNoSpace        = errors.New("kv: space quota exceeded")
	ErrCorrupt        = errors.New("kv: store is marked corrupt")
	ErrSessionUnknown = errors.New("kv: session unknown or retired")
	ErrBadCommand     = errors.New("kv: command does not decode")
	// ErrSkipped answers an entry whose exact revision the store has passed: it changed nothing and left no result, so the
	// proposer may try again under the same proposal id.
	ErrSkipped = errors.New("kv: exact revision has been passed")
	// ErrDeposed answers the end of a lease that a former leader proposed: its successor decides.
	ErrDeposed     = errors.New("kv: the leader that found the lease expired leads no more")
	ErrJobExists   = errors.New("kv: a job with this id exists")
	ErrJobConflict = errors.New("kv: the job was changed meanwhile")
	// ErrAborted answers a proposal that members recorded, but that its proposer never repeated. It was never executed and
	// never will be.
	ErrAborted = errors.New("kv: the proposal was given up because its proposer vanished; retry under a new id")
	// ErrLooksTooFar answers a transaction that writes, and that compares too much, or whose puts keep too many values.
	ErrLooksTooFar = errors.New("kv: the transaction compares, or keeps, too many keys and values")
	// ErrOverQuota answers a command whose puts would take the keys of a prefix beyond the quota of a rule.
	ErrOverQuota     = errors.New("kv: the quota of a prefix is reached")
	ErrLimitNotFound = errors.New("kv: there is no limit of this name")
	ErrTooManyLimits = errors.New("kv: there are as many limits as there may be")
	// ErrHeadBehind answers the head of a chain of records of which a later one is known, or another one with its number.
	ErrHeadBehind = errors.New("kv: the chain of records has gone on from another record")
	// ErrTooManyHeads answers the first head of a member if there are heads of as many other ones as there may be.
	ErrTooManyHeads = errors.New("kv: heads of the records of as many members are kept as there may be")
)

// Errors of answers, not of results: the command was executed, and its answer can not be given. They differ between members and
// are never stored.
var (
	ErrResultGone = errors.New("kv: the command was executed, and the values of its result are compacted meanwhile")
	// ErrAnswerTooLarge means that an answer exceeds the bound of one answer.
	ErrAnswerTooLarge = errors.New("kv: the answer is too large: ask for less, by a limit or by single keys")
	// ErrAnswersBusy means that other answers use up the memory for answers.
	ErrAnswersBusy = errors.New("kv: too many large answers at once: try again later")
)
