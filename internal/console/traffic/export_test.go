package traffic

// Even are members among which none stands out.
var Even = even
