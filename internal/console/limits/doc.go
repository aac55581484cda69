// Package limits is the pages of the console about limits of users and prefixes: what each allows, how much of a quota is used,
// how many requests were refused; and forms that set and delete one, with a preview and the command that does the same.
//
// Rules, quotas and what they have come from the service Limits, as the user who looks; the requests that members refused come
// from what they observe, so that they are those of all.
//
// Invariants:
//  1. A form sets a limit only in the place of what its preview has shown.
//  2. A limit is deleted only if its name was typed.
//  3. A limit that is refused here before the member is asked is refused by package kv's own check.
//
// All functions may be called concurrently.
package limits
