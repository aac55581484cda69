// Package place opens the place for objects that a URL names.
//
// file:///mnt/backups
// s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION&path-style=true&ca=FILE&credentials=FILE&profile=NAME
//
// A URL has no secrets, so that it may be logged and replicated: credentials come from the environment (AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN) or from a file. A URL with a user, or with a parameter that is not known, is
// refused by an error that repeats no value of it, since that may be a secret.
package place
