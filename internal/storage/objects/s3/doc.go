// Package s3 keeps objects in a bucket of Amazon S3, or of a server that speaks its protocol.
//
// The library (minio-go) signs requests and reads answers. It does not try again (package retry does), uses neither a transport
// nor files of credentials of its own, and is given only answers of a bounded size: a server may be hostile.
//
// A Put asks whether the name is taken, and then writes with `If-None-Match: *`, which most servers honour, and some ignore.
// Safety rests on neither: names have sums in them, and PutOnce reads an object back after any doubtful answer. The bytes of
// each request are covered by its signature, and by an MD5 that buckets with a lock demand.
//
// Memory: a list holds at most MemoryTimes the bytes of Options.AnswerBytes, and any other operation OtherBytes, however large
// its object. A body is read twice, once for its sums.
package s3
