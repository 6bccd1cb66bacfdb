// The roofline as SVG: intensity against rate, both logarithmic, under the ceilings that were measured.

#include <algorithm>
#include <cmath>

#include "lab/report_parts.h"
#include "lab/shown.h"

namespace ridge::report {

namespace {

struct Level {
  int64_t bytes = 0;  // up to so much data
  double bandwidth = 0;
};

/// The steps of the bandwidth curve: a new level where it has fallen by more than two fifths.
std::vector<Level> levels_of(const ThreadCeilings& c) {
  std::vector<Level> levels;
  for (const BandwidthPoint& p : c.curve) {
    if (levels.empty() || p.read * 1e9 < 0.6 * levels.back().bandwidth)
      levels.push_back({p.bytes, p.read * 1e9});
    else  // small sets can be slower than the level is: threads meet too often
      levels.back() = {p.bytes, std::max(levels.back().bandwidth, p.read * 1e9)};
  }
  // The last is main memory, at what is reached far out.
  if (!levels.empty()) levels.back().bandwidth = c.curve.back().read * 1e9;
  return levels;
}

struct Box {
  double x, y, width, height;
  bool meets(const Box& o) const {
    return x < o.x + o.width && o.x < x + width && y < o.y + o.height && o.y < y + height;
  }
};

/// "0.01", "1", "100", "10 G".
std::string power(int exponent) {
  static const char* const kUnits[] = {"", " k", " M", " G", " T", " P"};
  if (exponent < 0) return "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + "1";
  const int group = std::min(5, exponent / 3);
  return "1" + std::string(static_cast<size_t>(exponent - 3 * group), '0') + kUnits[group];
}

class Roofline {
 public:
  Roofline(const Profile& p, const std::vector<NamedRow>& rows, int width, int height,
           const std::string& name)
      : ceilings_(p.machine.at(p.threads)), rows_(rows), name_(name), width_(width), height_(height) {
    levels_ = levels_of(ceilings_);
    find_ranges();
  }

  std::string draw() {
    out_ =
        text("<svg viewBox=\"0 0 ", width_, " ", height_, "\" role=\"group\" aria-label=\"Roofline plot\">");
    axes();
    roofs();
    for (const NamedRow& r : rows_) whisker(r);
    out_ += "<g>";
    // Large marks first, so that none hides a smaller one.
    std::vector<const NamedRow*> order;
    for (const NamedRow& r : rows_)
      if (shown(r)) order.push_back(&r);
    std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->share > b->share; });
    for (const NamedRow* r : order) mark(*r);
    for (const NamedRow* r : order) label(*r);
    for (const NamedRow* r : order) tip(*r);
    return out_ + "</g></svg>";
  }

 private:
  static bool shown(const NamedRow& r) {
    return r.row->op != "host" && r.row->time_us > 0 && r.row->cost.total_bytes() > 0;
  }
  static double flops(const NamedRow& r) { return static_cast<double>(r.row->cost.total_flops()); }
  double intensity(const NamedRow& r) const {
    return flops(r) > 0 ? flops(r) / static_cast<double>(r.row->cost.total_bytes()) : std::pow(10, x_low_);
  }
  /// Without arithmetic, what the same bandwidth would be at the left edge.
  double rate(const NamedRow& r, double us) const {
    return intensity(r) * static_cast<double>(r.row->cost.total_bytes()) / us * 1e6;
  }

  void find_ranges() {
    double peak = 1e9, least_x = 1, most_x = 10;
    for (const double f : ceilings_.flops) peak = std::max(peak, f);
    double least_y = peak;
    for (const NamedRow& r : rows_)
      if (shown(r) && flops(r) > 0) {
        const double x = flops(r) / static_cast<double>(r.row->cost.total_bytes());
        least_x = std::min(least_x, x), most_x = std::max(most_x, x);
        least_y = std::min(least_y, flops(r) / r.row->time_us * 1e6);
      }
    for (const Level& l : levels_)
      if (l.bandwidth > 0) most_x = std::max(most_x, peak / l.bandwidth);
    x_low_ = std::max(-4.0, std::floor(std::log10(least_x) - 0.15));
    x_high_ = std::min(6.0, std::ceil(std::log10(most_x)));
    for (const NamedRow& r : rows_)
      if (shown(r)) least_y = std::min(least_y, rate(r, r.row->time_us));
    y_high_ = std::log10(peak) + 0.4;
    y_low_ = std::max(std::floor(std::log10(std::max(least_y, 1.0))), std::floor(y_high_) - 8);
  }

  bool narrow() const { return width_ < 600; }
  double left() const { return 58; }
  double bottom() const { return height_ - 46; }
  double x_of(double v) const {
    return left() + (std::log10(v) - x_low_) / (x_high_ - x_low_) * (width_ - 14 - left());
  }
  double y_of(double v) const {
    return bottom() - (std::log10(std::max(v, 1e-9)) - y_low_) / (y_high_ - y_low_) * (bottom() - 14);
  }
  double inside_y(double y) const { return std::clamp(y, 14.0, bottom()); }

  static std::string f(double v) { return text(std::round(v * 10) / 10); }
  void line(double x1, double y1, double x2, double y2, const char* classes) {
    out_ += text("<line class=\"", classes, "\" x1=\"", f(x1), "\" y1=\"", f(y1), "\" x2=\"", f(x2),
                 "\" y2=\"", f(y2), "\"/>");
  }
  void words(double x, double y, const std::string& what, const char* more = "") {
    out_ += text("<text x=\"", f(x), "\" y=\"", f(y), "\"", more, ">", escaped(what), "</text>");
  }

  void axes() {
    for (int e = static_cast<int>(x_low_); e <= static_cast<int>(x_high_); ++e) {
      const double x = x_of(std::pow(10, e));
      line(x, 14, x, bottom(), "grid");
      words(x, bottom() + 17, power(e),
            e == static_cast<int>(x_high_) ? " text-anchor=\"end\"" : " text-anchor=\"middle\"");
    }
    for (int e = static_cast<int>(y_low_); e <= static_cast<int>(y_high_); ++e) {
      const double y = y_of(std::pow(10, e));
      line(left(), y, width_ - 14, y, "grid");
      words(left() - 7, y + 4, power(e), " text-anchor=\"end\"");
    }
    words((left() + width_) / 2, height_ - 6,
          narrow() ? "FLOP per byte" : "Arithmetic intensity, FLOP per byte",
          " class=\"axis\" text-anchor=\"middle\"");
    words(12, bottom() / 2, "FLOP/s",
          text(" class=\"axis\" text-anchor=\"middle\" transform=\"rotate(-90 12 ", f(bottom() / 2), ")\"")
              .c_str());
  }

  void roofs() {
    double peak = 0;
    for (const double p : ceilings_.flops) peak = std::max(peak, p);
    double above = 1e9;  // y of the label above
    std::vector<std::pair<double, size_t>> peaks;
    for (size_t e = 0; e < kEngines; ++e)
      if (ceilings_.flops[e] > 0) peaks.emplace_back(ceilings_.flops[e], e);
    std::sort(peaks.rbegin(), peaks.rend());
    for (const auto& [p, e] : peaks) {
      // From where the widest memory roof meets it.
      const double from = levels_.empty() ? left() : std::max(left(), x_of(p / levels_.front().bandwidth));
      line(from, y_of(p), width_ - 14, y_of(p), p == peak ? "roof" : "inner");
      double y = y_of(p) - 5;
      if (above < 1e9 && y < above + 14) y = y_of(p) + 14;
      above = y;
      words(width_ - 16, y,
            text(engine_name(static_cast<Engine>(e)), " ",
                 rate_text(p, e == size_t(Engine::kInt8) ? "OP/s" : "FLOP/s")),
            " text-anchor=\"end\"");
    }
    const double decade_x = x_of(10) - x_of(1), decade_y = y_of(1) - y_of(10);
    const double angle = -std::atan2(decade_y, decade_x) * 180 / 3.14159265358979;
    double last = 1e9;  // y of the label of the roof above
    for (size_t i = 0; i < levels_.size(); ++i) {
      const Level& l = levels_[i];
      const double low = std::pow(10, std::max(x_low_, y_low_ - std::log10(l.bandwidth)));
      const double high = std::min(std::pow(10, x_high_), peak / l.bandwidth);
      if (high <= low) continue;
      const bool far = i + 1 == levels_.size();
      line(x_of(low), y_of(low * l.bandwidth), x_of(high), y_of(high * l.bandwidth), far ? "roof" : "inner");
      const double at = low * std::pow(10, narrow() ? 0.12 : 0.1);
      double y = y_of(at * l.bandwidth) - 5;
      if (std::fabs(y - last) < 14) y += 18;  // under its line
      last = y;
      const std::string size = far ? "memory" : text("to ", bytes_text(static_cast<double>(l.bytes)));
      out_ += text("<text transform=\"translate(", f(x_of(at)), " ", f(y), ") rotate(", f(angle), ")\">",
                   size, narrow() ? "" : " " + rate_text(l.bandwidth, "B/s"), "</text>");
    }
  }

  void whisker(const NamedRow& r) {
    if (!shown(r) || r.row->verdict.limit_us <= 0 || r.share < 0.03) return;
    const double x = x_of(intensity(r));
    line(x, inside_y(y_of(rate(r, r.row->time_us))), x, inside_y(y_of(rate(r, r.row->verdict.limit_us))),
         text("gap ", phase_name(r.phase->phase)).c_str());
  }

  double size(const NamedRow& r) const {
    return (narrow() ? 3.5 : 4.5) + (narrow() ? 8 : 12) * std::sqrt(r.share);
  }
  std::string id(const NamedRow& r) const { return text(name_, "-", r.id); }

  void mark(const NamedRow& r) {
    const double x = x_of(intensity(r)), y = inside_y(y_of(rate(r, r.row->time_us))), s = size(r);
    marks_.push_back({x - s, y - s, 2 * s, 2 * s});
    std::string path;
    if (r.phase->phase == Phase::kPrefill)
      path = text("M", f(x - s), " ", f(y), "a", f(s), " ", f(s), " 0 1 0 ", f(2 * s), " 0a", f(s), " ", f(s),
                  " 0 1 0 ", f(-2 * s), " 0z");
    else if (r.phase->phase == Phase::kDecode)
      path = text("M", f(x), " ", f(y - 1.2 * s), "l", f(1.2 * s), " ", f(1.2 * s), "l", f(-1.2 * s), " ",
                  f(1.2 * s), "l", f(-1.2 * s), " ", f(-1.2 * s), "z");
    else
      path = text("M", f(x - 0.9 * s), " ", f(y - 0.9 * s), "h", f(1.8 * s), "v", f(1.8 * s), "h",
                  f(-1.8 * s), "z");
    std::string spoken;
    for (const std::string& l : lines_of(r)) spoken += text(spoken.empty() ? "" : "; ", l);
    out_ += text("<g class=\"mark\" id=\"", id(r), "\" tabindex=\"0\" role=\"img\" aria-label=\"",
                 escaped(spoken), "\"><path class=\"", phase_name(r.phase->phase), "\" d=\"", path,
                 "\"/><title>", escaped(spoken), "</title></g>");
  }

  /// Beside its mark where there is room, else nowhere: the mark still says it.
  void label(const NamedRow& r) {
    if (r.share < 0.01) return;
    const double x = x_of(intensity(r)), y = inside_y(y_of(rate(r, r.row->time_us))), s = size(r);
    const double width = 7.0 * static_cast<double>(r.id.size());
    const Box own{x - s, y - s, 2 * s, 2 * s};
    const Box places[] = {{x + s + 2, y - 6, width, 12},
                          {x - s - 3 - width, y - 6, width, 12},
                          {x - width / 2, y - s - 14, width, 12},
                          {x - width / 2, y + s + 2, width, 12}};
    for (const Box& b : places) {
      if (b.x < left() || b.x + b.width > width_ - 2) continue;
      const auto meets = [&](const Box& o) { return b.meets(o) && !(o.x == own.x && o.y == own.y); };
      if (std::any_of(marks_.begin(), marks_.end(), meets) ||
          std::any_of(labels_.begin(), labels_.end(), meets))
        continue;
      labels_.push_back(b);
      words(b.x, b.y + 10, r.id, " class=\"id\"");
      return;
    }
  }

  std::vector<std::string> lines_of(const NamedRow& r) const {
    const ProfileRow& row = *r.row;
    const double bytes = static_cast<double>(row.cost.total_bytes()) / row.time_us * 1e6;
    std::vector<std::string> lines = {
        text(r.id, " ", row_name(row), " ", row.shape),
        text(phase_name(r.phase->phase), ", ", percent(r.share), " of its time")};
    if (flops(r) > 0)
      lines.push_back(
          text(rate_text(rate(r, row.time_us), "FLOP/s"), " at ", number(intensity(r)), " FLOP per byte"));
    lines.push_back(text(rate_text(bytes, "B/s"), flops(r) > 0 ? "" : ", no arithmetic"));
    if (row.verdict.limit_us > 0)
      lines.push_back(text(percent(row.verdict.attainment), " of its limit (", bound_name(row.verdict.bound),
                           ")", row.verdict.defect ? text(": ", defect_text(row.verdict)) : std::string()));
    return lines;
  }

  /// In the corner above the roofs, which no mark can reach.
  void tip(const NamedRow& r) {
    const auto lines = lines_of(r);
    out_ += text("<g class=\"tip\" id=\"", id(r), "-tip\"><rect x=\"", f(left() + 8),
                 "\" y=\"20\" rx=\"6\" width=\"", narrow() ? 250 : 330, "\" height=\"",
                 17 * lines.size() + 12, "\"/>");
    for (size_t i = 0; i < lines.size(); ++i)
      words(left() + 17, 20 + 18 + 17 * static_cast<double>(i),
            lines[i].size() > 44 ? lines[i].substr(0, 43) + "…" : lines[i], i == 0 ? " class=\"first\"" : "");
    out_ += text("</g><style>#", id(r), ":hover~#", id(r), "-tip,#", id(r), ":focus~#", id(r),
                 "-tip{visibility:visible}</style>");
  }

  const ThreadCeilings& ceilings_;
  const std::vector<NamedRow>& rows_;
  std::vector<Level> levels_;
  std::vector<Box> marks_, labels_;
  std::string name_, out_;
  int width_, height_;
  double x_low_ = 0, x_high_ = 0, y_low_ = 0, y_high_ = 0;
};

}  // namespace

std::string roofline_svg(const Profile& profile, const std::vector<NamedRow>& rows, int width, int height,
                         const std::string& name) {
  return Roofline(profile, rows, width, height, name).draw();
}

}  // namespace ridge::report
