package figures

import (
	"fmt"
	"math"
	"strconv"
)

// Kind is a column of the report.
type Kind int

// The columns, in the order in which they are printed.
const (
	PerSecond Kind = iota
	Done
	MedianMillis
	P90Millis
	P99Millis
	MaxMillis
	WaitMillis
	QuietMillis
	ServerMicros
	ClientMicros
	ResidentMiB
	AfterMiB
	GroupMiB
	Failures
	Refused
	Renewals
	Unrenewed
	Calls
	CallsRefused
	Cancelled
	Elections
	OthersPercent
	DeviceMiB
	DiskMiB
	DeviceBytes
	LowestSecond
	FastPercent
	OvertakenPercent
	AgreedPercent
	OfferedPercent
	WonPercent
	LinkBytes
	LinkBytesBeside
	BusiestLinkBytes
	IdleBytes
	LargeFailures
	GapSeconds
	QueueSeconds
	TimesQueue
	MustMiB
	BusiestMiB
	SecondMiB
	OtherLinksMiB
	ArrivedSeconds
	QuietSeconds
	DecidedMillis
	SettledMillis
	PauseMillis
	BatchPuts
	LoopMicros
	DiskMicros
	ApplyMicros
	WatchMicros
	ClientsMicros
	PeersMicros
	RestMicros
	BoundPerSecond
	kinds
)

// column is what a Kind says.
type column struct {
	heading  string
	about    string
	compared bool // a ratio between servers means something
	counts   bool // whole numbers
}

var columns = [kinds]column{
	PerSecond:        {"op/s", "operations a second that ended inside the window", true, false},
	Done:             {"done", "how many were done", false, true},
	MedianMillis:     {"p50 ms", "median latency", true, false},
	P90Millis:        {"p90 ms", "latency that nine of ten do not exceed", false, false},
	P99Millis:        {"p99 ms", "latency that 99 of 100 do not exceed", true, false},
	MaxMillis:        {"max ms", "longest latency", false, false},
	WaitMillis:       {"wait ms", "time until it was over: see the workload", true, false},
	QuietMillis:      {"quiet ms", "longest time without a successful write before the fault", false, false},
	ServerMicros:     {"server us/op", "user and system time of all members, of one operation", true, false},
	ClientMicros:     {"client us/op", "the same of this program, which makes the load", false, false},
	ResidentMiB:      {"RSS MiB", "largest member's peak of its resident set", true, false},
	AfterMiB:         {"after MiB", "largest member's resident set afterwards", false, false},
	GroupMiB:         {"group MiB", "limit of each member's memory control group", false, false},
	Failures:         {"errors", "operations that failed, or took over 10 s", false, true},
	Refused:          {"refused", "operations that a member refused", false, true},
	Renewals:         {"renewals", "renewals of a lease by another client", false, true},
	Unrenewed:        {"unrenewed", "those of them that failed", false, true},
	Calls:            {"calls", "calls that an attacker began", false, true},
	CallsRefused:     {"calls refused", "its calls and connections that a member refused", false, true},
	Cancelled:        {"cancelled", "watches that a server ended", false, true},
	Elections:        {"elections", "changes of the leader", false, true},
	OthersPercent:    {"others %", "part of the machine's cores that other processes took", false, false},
	DeviceMiB:        {"device MiB", "bytes to the device below --dir, by anyone", true, false},
	DiskMiB:          {"disk MiB", "what the files of all members take afterwards", true, false},
	DeviceBytes:      {"device B/op", "bytes to the device, of one operation", true, false},
	LowestSecond:     {"lowest s", "operations of the slowest second, as a part of the median second's", true, false},
	FastPercent:      {"fast %", "proposals of the fast path that a superquorum decided", false, false},
	OvertakenPercent: {"overtaken %", "those that committed while all who had answered agreed", false, false},
	AgreedPercent:    {"agreed %", "both together", false, false},
	OfferedPercent:   {"offered %", "writes that the native client offered to all voters", false, false},
	WonPercent:       {"won %", "those of them that a superquorum decided", false, false},
	LinkBytes:        {"link B/op", "bytes on all links between members, of one operation", true, false},
	LinkBytesBeside:  {"beside idle", "the same without what the members tell each other when idle", true, false},
	BusiestLinkBytes: {"busiest B/op", "bytes on the busiest link, of one operation", true, false},
	IdleBytes:        {"idle B/s", "bytes a second on all links without a load", true, false},
	LargeFailures:    {"large errors", "large values that failed", false, true},
	GapSeconds:       {"gap s", "longest time without a small put that succeeded", true, false},
	QueueSeconds:     {"queue s", "most time that what was sent before a small put takes over one link", false, false},
	TimesQueue:       {"p99 of queue", "p99 of a put's time, as a multiple of that and three round trips", true, false},
	MustMiB:          {"must MiB", "what has to go over the busiest link", false, false},
	BusiestMiB:       {"busiest MiB", "what the busiest link carried", false, false},
	SecondMiB:        {"second MiB", "what the second busiest link carried", false, false},
	OtherLinksMiB:    {"others MiB", "what all other links carried", false, false},
	ArrivedSeconds:   {"done s", "time until all that was large had arrived", true, false},
	QuietSeconds:     {"quiet s", "time until the links carried only what they always do", false, false},
	DecidedMillis:    {"decided ms", "time until a member told that a change is decided", false, false},
	SettledMillis:    {"settled ms", "time until who left may be switched off", false, false},
	PauseMillis:      {"pause ms", "longest time without an acknowledged put", false, false},
	BatchPuts:        {"puts/sync", "puts for each sync of the leader's log", false, false},
	LoopMicros:       {"loop us", "processor time of the leader's loop for a put", false, false},
	DiskMicros:       {"disk us", "the same of the lane that writes its log, and sends what waits for that", false, false},
	ApplyMicros:      {"apply us", "the same of the lane that applies", false, false},
	WatchMicros:      {"watch us", "the same of watches, in any goroutine", false, false},
	ClientsMicros:    {"clients us", "the same of its connections to clients", false, false},
	PeersMicros:      {"peers us", "the same of its connections to members", false, false},
	RestMicros:       {"rest us", "the same of all else: the store's compaction, the runtime", false, false},
	BoundPerSecond:   {"bound op/s", "what the longest of loop, disk and apply would allow, on cores enough", false, false},
}

// String is the heading of the column.
func (k Kind) String() string { return columns[k].heading }

// About says what the column means.
func (k Kind) About() string { return columns[k].about }

// Show is a figure of the column as it is printed.
func (k Kind) Show(v float64) string {
	if columns[k].counts && !math.IsNaN(v) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return Show(v)
}

// Show gives three digits or all before the point, and a dash for what was not measured.
func Show(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v == 0 || v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// Kinds are all columns, in their order.
func Kinds() (all []Kind) {
	for k := range kinds {
		all = append(all, k)
	}
	return all
}
