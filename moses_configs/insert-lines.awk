# Inserts lines below the section headings of a moses.ini: awk -f insert-lines.awk LINES INI
# LINES has headings such as [feature] and [weight], each followed by the line that belongs below it. Exits with 1 if
# the ini lacks one of them.
FILENAME == ARGV[1] {
	if (/^\[/) section = $0
	else if ($0 != "") { line_of[section] = $0; given = 1 }
	next
}
{ print; sub(/^[ \t]*/, ""); sub(/\].*/, "]") } # as Moses reads headings
$0 in line_of { print line_of[$0]; delete line_of[$0] }
END {
	if (!given) {
		print ARGV[1] ": expected lines below headings, found none" > "/dev/stderr"
		exit 1
	}
	for (section in line_of) {
		print FILENAME ": expected a section " section ", found none" > "/dev/stderr"
		exit 1
	}
}
