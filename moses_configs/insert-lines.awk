# Inserts lines below the section headings of a moses.ini: awk -f insert-lines.awk LINES INI
# LINES has headings such as [feature] and [weight], each followed by the line that belongs below it.
NR == FNR {
	if (/^\[/) section = $0
	else if ($0 != "") line_of[section] = $0
	next
}
{ print }
$0 in line_of { print line_of[$0] }
