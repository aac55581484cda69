package limit

import "github.com/quorate/quorate/api/quoratepb"

// bounds are the flags of the bounds, with their fields, in the order in which they are shown.
var bounds = []struct {
	flag, help, word string
	bytes            bool
	field            func(l *quoratepb.Limit) **int64
}{
	{"writes", "requests a second that write, at each member", "writes/s", false,
		func(l *quoratepb.Limit) **int64 { return &l.WritesPerSecond }},
	{"write-bytes", "bytes a second of the keys and values that they write, at each member", "written/s", true,
		func(l *quoratepb.Limit) **int64 { return &l.WriteBytesPerSecond }},
	{"reads", "requests a second that only read, at each member", "reads/s", false,
		func(l *quoratepb.Limit) **int64 { return &l.ReadsPerSecond }},
	{"read-bytes", "bytes a second of their answers, at each member", "read/s", true,
		func(l *quoratepb.Limit) **int64 { return &l.ReadBytesPerSecond }},
	{"value-bytes", "bytes of the largest value", "a value", true,
		func(l *quoratepb.Limit) **int64 { return &l.ValueBytes }},
	{"quota-bytes", "bytes of all keys and values with the prefix, in the cluster", "in all", true,
		func(l *quoratepb.Limit) **int64 { return &l.QuotaBytes }},
	{"quota-keys", "keys with the prefix, in the cluster", "keys", false,
		func(l *quoratepb.Limit) **int64 { return &l.QuotaKeys }},
}
